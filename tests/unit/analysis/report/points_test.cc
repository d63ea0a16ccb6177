// SPDX-License-Identifier: MIT
// Points and grid of the latency chart: every request is in exactly one of them, and thinning keeps every
// isolated request.
#include <cmath>
#include <numeric>

#include "analysis/report/page_data.h"
#include "tests/support/catch.h"
#include "tests/support/sample_explanation.h"

using namespace forktail::analysis;
using namespace forktail::analysis::report;

namespace
{

uint64_t InGrid(const ReportPoints &p)
{
	return std::accumulate(p.cell_count.begin(), p.cell_count.end(), uint64_t{0});
}

Explained Made(double seconds = 10, uint32_t slow_one_in = 50)
{
	SampleSize size;
	size.seconds = seconds;
	size.rate = 10'000;
	size.spans = 500;
	size.slow_one_in = slow_one_in;
	return SampleExplanation(size);
}

ReportClock ClockOf(const Explanation &e)
{
	return ReportClock(e.run.start_ns, e.run.end_ns, e.zero_ns);
}

} // namespace

TEST_CASE("every request is a point or counted in the grid")
{
	Explained e = Made();
	ReportPoints p = CollectPoints(e, e.reading.get(), ClockOf(e));
	CHECK(p.start.size() == e.blame.slow.size());
	CHECK(InGrid(p) == e.blame.count - e.blame.slow.size());
	CHECK(std::is_sorted(p.cell_column.begin(), p.cell_column.end()));

	PointLimits tight;
	tight.points = 700;
	ReportPoints thin = CollectPoints(e, e.reading.get(), ClockOf(e), tight);
	CHECK(thin.start.size() == 700);
	CHECK(thin.slow == e.blame.slow.size());
	CHECK(InGrid(thin) == e.blame.count - 700);
	CHECK(std::is_sorted(thin.start.begin(), thin.start.end()));
}

TEST_CASE("thinning keeps an isolated point among crowds")
{
	Explained e = Made();
	SlowRequest lone = e.blame.slow[0];
	lone.due_ns = e.run.start_ns + 1'000'000;
	lone.latency_ns = 5'000'000'000;
	e.blame.slow.insert(e.blame.slow.begin(), lone);
	PointLimits tight;
	tight.points = e.blame.slow.size() / 2;
	ReportPoints p = CollectPoints(e, e.reading.get(), ClockOf(e), tight);
	CHECK(p.start.size() == tight.points);
	CHECK(*std::max_element(p.latency_ns.begin(), p.latency_ns.end()) == Approx(5e9));
}

TEST_CASE("a point carries its causes and their shares")
{
	Explained e;
	e.run.start_ns = 1000;
	e.run.end_ns = 1000 + 1'000'000'000;
	SlowRequest first = {}, second = {};
	first.due_ns = 1000 + 500'000'000;
	first.since_ns = 1000 + 499'000'000;
	first.latency_ns = 4'000'000;
	first.part_count = 2;
	first.op = 1;
	second.due_ns = second.since_ns = 1000 + 600'000'000; // no parts at all
	second.latency_ns = 1'000'000;
	e.blame.slow = {first, second};
	e.blame.parts = {{Cause::Fork, kNoHop, 2'000'000, 1'000'000},
			 {Cause::ServerBusy, kNoHop, 1'000'000, 0}};
	ReportClock clock(1000, 1000 + 1'000'000'000, 1000);
	ReportPoints p = CollectPoints(e, e.reading.get(), clock);
	REQUIRE(p.start.size() == 2);
	CHECK(p.start[0] == 500'000'000);
	CHECK(p.since[0] == 499'000'000);
	CHECK(p.latency_ns[0] == 4'000'000);
	CHECK(p.cause[0] == Index(Cause::Fork));
	CHECK(p.op[0] == 1);
	CHECK(p.cause[1] == Index(Cause::Unknown));
	CHECK(p.part_count == std::vector<uint8_t>{2, 0});
	CHECK(p.part_cause[1] == Index(Cause::ServerBusy));
	CHECK(p.part_direct_ns == std::vector<float>{2e6f, 1e6f});
	CHECK(p.part_queued_ns == std::vector<float>{1e6f, 0});
	CHECK(p.hop == std::vector<uint16_t>{kNoHop, kNoHop});
	CHECK(p.unread_ns.empty()); // it is known for none of them
	// Where parts do not fit, each point keeps its largest.
	PointLimits tight;
	tight.parts = 1;
	p = CollectPoints(e, e.reading.get(), clock, tight);
	CHECK(p.part_count == std::vector<uint8_t>{1, 0});
	CHECK(p.part_cause == std::vector<uint8_t>{static_cast<uint8_t>(Index(Cause::Fork))});
}

TEST_CASE("a point has its connection, its thread and the arrival time of its answer")
{
	Explained e;
	e.run.start_ns = 1000;
	e.run.end_ns = 1000 + 1'000'000'000;
	SlowRequest first = {}, second = {};
	first.due_ns = first.since_ns = 1000 + 100;
	first.latency_ns = 1'000'000;
	first.sent_ns = first.due_ns + 50;
	first.connection = 7;
	first.hop = 3;
	first.index = 41;
	first.arrived = true;
	first.unread_ns = 5000;
	second = first;
	second.due_ns += 1000;
	second.connection = 2;
	second.arrived = false;
	e.blame.slow = {first, second};
	ReportPoints p = CollectPoints(e, e.reading.get(), ReportClock(1000, e.run.end_ns, 1000));
	CHECK(p.connections == std::vector<uint32_t>{7, 2});
	CHECK(p.connection == std::vector<uint32_t>{0, 1});
	CHECK(p.hops == std::vector<uint16_t>{3});
	CHECK(p.hop == std::vector<uint16_t>{0, 0});
	CHECK(p.number == std::vector<uint32_t>{41, 41});
	CHECK(p.sent == std::vector<uint32_t>{150, 1100});
	REQUIRE(p.unread_ns.size() == 2);
	CHECK(p.unread_ns[0] == 5000);
	CHECK(std::isnan(p.unread_ns[1]));
	CHECK(std::isnan(p.way_ns[0]));
}

TEST_CASE("a point of a kernel log has its times in the kernel and its sizes")
{
	Explained e;
	e.run.start_ns = 1000;
	e.run.end_ns = 1000 + 1'000'000'000;
	SlowRequest first = {}, second = {};
	first.due_ns = first.since_ns = first.sent_ns = 1000 + 100;
	first.latency_ns = 1'000'000;
	second = first;
	first.read_ns = first.sent_ns + 70;
	first.written_ns = first.sent_ns + 1'000'010;
	first.request_bytes = 31;
	first.answer_bytes = 5;
	e.blame.slow = {second};
	CHECK(CollectPoints(e, e.reading.get(), ReportClock(1000, e.run.end_ns, 1000)).request_bytes.empty());
	e.blame.slow = {first, second};
	const ReportPoints p = CollectPoints(e, e.reading.get(), ReportClock(1000, e.run.end_ns, 1000));
	REQUIRE(p.read_after_ns.size() == 2);
	CHECK(p.read_after_ns[0] == 70);
	CHECK(p.written_after_ns[0] == 1'000'010);
	CHECK(std::isnan(p.read_after_ns[1]));
	CHECK(std::isnan(p.written_after_ns[1]));
	CHECK(p.request_bytes == std::vector<uint32_t>{31, 0});
	CHECK(p.answer_bytes == std::vector<uint32_t>{5, 0});
	CHECK(p.unread_ns.empty());
}

TEST_CASE("the grid gets coarser rather than larger")
{
	Explained e = Made(20);
	PointLimits tight;
	tight.cells = 10000;
	ReportPoints p = CollectPoints(e, e.reading.get(), ClockOf(e), tight);
	CHECK(p.cell_count.size() <= 10000);
	CHECK(p.columns < 4096);
	CHECK(InGrid(p) == e.blame.count - e.blame.slow.size());
	for (uint16_t column : p.cell_column)
		REQUIRE(column < p.columns);
}

TEST_CASE("requests around episodes are stored one by one, evenly thinned")
{
	Explained e = Made();
	ReportClock clock = ClockOf(e);
	ReportPoints all = CollectPoints(e, e.reading.get(), clock);
	REQUIRE(all.near_stride == 1);
	REQUIRE(all.near_start.size() > 1000);
	uint64_t expected = 0;
	for (size_t i = 0; i < e.run.requests.size(); i++) {
		uint64_t due = e.run.requests.due_ns[i];
		bool near = false;
		for (const Episode &episode : e.episodes) {
			uint64_t margin =
			    std::max<uint64_t>((episode.end_ns - episode.start_ns) / 2, 5'000'000);
			near |= due + margin >= episode.start_ns && due <= episode.end_ns + margin;
		}
		expected += near && e.run.requests.Latency(i) < e.blame.threshold_ns;
	}
	CHECK(all.near_start.size() == expected);

	PointLimits tight;
	tight.near = 300;
	ReportPoints few = CollectPoints(e, e.reading.get(), clock, tight);
	CHECK(few.near_start.size() <= 300);
	CHECK(few.near_start.size() == Approx(static_cast<double>(expected) / few.near_stride).margin(1));
	CHECK(std::is_sorted(few.near_start.begin(), few.near_start.end()));
}

TEST_CASE("iterations of a run in stretches are each counted once")
{
	Explained e;
	e.run.start_ns = e.zero_ns = 1000;
	e.run.end_ns = 1'001'000;
	e.blame.from_iterations = true;
	e.blame.threshold_ns = 10'000;
	std::vector<ft_span> all;
	for (uint64_t i = 0; i < 1000; i++) {
		ft_span s = {};
		s.start_ns = 1000 * (i + 1);
		s.duration_ns = i % 10 == 0 ? 10'000 : 900 + i;
		all.push_back(s);
	}
	for (const ft_span &s : all)
		e.run.iterations.push_back(s);
	Episode episode;
	episode.start_ns = episode.since_ns = 100'000;
	episode.end_ns = 200'000;
	e.episodes = {episode};
	ReportPoints whole = CollectPoints(e, e.reading.get(), ClockOf(e));
	REQUIRE(InGrid(whole) == 900);
	REQUIRE(whole.near_start.size() == 900);
	// What crosses a boundary is in both neighbours.
	e.reading->stretches.each = [&](const auto &see) {
		for (uint64_t from : {uint64_t{0}, uint64_t{150'500}, uint64_t{777'000}}) {
			uint64_t to = from == 0 ? 150'500 : from == 150'500 ? 777'000 : UINT64_MAX;
			e.run.iterations.Truncate(0);
			for (const ft_span &s : all)
				if (s.start_ns <= to && s.start_ns + s.duration_ns >= from)
					e.run.iterations.push_back(s);
			see(from, to);
		}
	};
	ReportPoints cut = CollectPoints(e, e.reading.get(), ClockOf(e));
	CHECK(cut.cell_column == whole.cell_column);
	CHECK(cut.cell_bin == whole.cell_bin);
	CHECK(cut.cell_count == whole.cell_count);
	CHECK(cut.near_start == whole.near_start);
	CHECK(cut.near_latency_ns == whole.near_latency_ns);
}

TEST_CASE("a clock holds any run in 32 bits")
{
	uint64_t day = 86'400ull * 1'000'000'000;
	ReportClock clock(5, 5 + day, 5 + day / 2);
	CHECK(clock.tick_ns == day / UINT32_MAX + 1);
	CHECK(clock.Tick(5) == 0);
	CHECK(uint64_t{clock.Tick(5 + day)} * clock.tick_ns <= day);
	CHECK(clock.Tick(5 + 2 * day) == clock.Tick(5 + day));
	CHECK(clock.Seconds(5) == -43'200);
	ReportClock none(7, 7, 7);
	CHECK(none.end_ns > none.begin_ns);
}

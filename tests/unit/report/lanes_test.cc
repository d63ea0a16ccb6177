// SPDX-License-Identifier: MIT
// Lanes: what they are made of, and that fitting them into a page loses no time.
#include <cmath>
#include <map>

#include "report/lanes.h"
#include "report/metrics.h"
#include "tests/support/catch.h"
#include "tests/support/sample_explanation.h"

using namespace forktail;

namespace
{

constexpr uint64_t kMs = 1'000'000;

ReportClock ClockOf(const Explanation &e)
{
	return ReportClock(e.run.start_ns, e.run.end_ns, e.zero_ns);
}

Explanation Made(size_t spans = 2000)
{
	SampleSize size;
	size.seconds = 10;
	size.rate = 1000;
	size.spans = spans;
	return SampleExplanation(size);
}

std::vector<Lane> LanesOf(const Explanation &e, size_t threads = 64)
{
	LaneLimits limits;
	limits.threads = threads;
	size_t left_out = 0;
	return MakeLanes(e, ClockOf(e), limits, &left_out);
}

// Time by cause of one reduced lane, in ns.
std::map<int, double> TimesOf(const ReportLanes &r, size_t lane, const ReportClock &clock)
{
	std::map<int, double> times;
	for (size_t i = r.spans[lane].first; i < r.spans[lane].first + r.spans[lane].count; i++)
		times[r.span_cause[i]] +=
		    static_cast<double>(r.span_length[i]) * static_cast<double>(clock.tick_ns);
	for (size_t i = r.cells[lane].first; i < r.cells[lane].first + r.cells[lane].count; i++)
		times[r.cell_cause[i]] += r.cell_share[i] / 65535.0 * static_cast<double>(r.cell_ns);
	return times;
}

} // namespace

TEST_CASE("a run's lanes are its threads, children, CPUs and disks")
{
	Explanation e = Made();
	std::vector<Lane> lanes = LanesOf(e);
	std::map<std::string, int> kinds;
	for (const Lane &lane : lanes) {
		kinds[lane.kind]++;
		CHECK_FALSE(lane.name.empty());
		for (size_t i = 1; i < lane.spans.size(); i++)
			REQUIRE(lane.spans[i].start_ns >= lane.spans[i - 1].end_ns);
	}
	CHECK(kinds == std::map<std::string, int>{
			   {"serving", 1}, {"thread", 3}, {"child", 1}, {"softirq", 2}, {"disk", 2}});
	CHECK(lanes[0].kind == "serving");
	CHECK(lanes[0].name == "redis-server");
	// Two snapshots, one after the other, share a lane.
	CHECK(lanes[4].name == "snapshot child");
	CHECK(lanes[4].note == "4312, 4377");
	CHECK(lanes[4].life.size() == 2);
}

TEST_CASE("a recorded load generator's lanes are its own, below the server's, and make no second server")
{
	Explanation e = Made();
	Thread load;
	load.tid = load.tgid = 1; // before the server's
	load.flags = FT_THREAD_CLIENT | FT_THREAD_MAIN;
	load.comm = "load-0";
	load.role = "load generator";
	load.start_ns = e.run.start_ns;
	load.end_ns = e.run.end_ns;
	e.run.threads.push_back(load);
	std::vector<Lane> lanes = LanesOf(e);
	size_t server = 0, client = 0;
	for (size_t i = 0; i < lanes.size(); i++) {
		if (lanes[i].group == "Server threads")
			server = i + 1;
		if (lanes[i].group == "Load generator" && lanes[i].name == "load-0")
			client = i + 1;
	}
	REQUIRE(server);
	CHECK(client > server);
}

TEST_CASE("threads beyond the limit are counted, children keep their lane if one is theirs")
{
	Explanation e = Made();
	LaneLimits limits;
	limits.threads = 2;
	size_t left_out = 0;
	std::vector<Lane> lanes = MakeLanes(e, ClockOf(e), limits, &left_out);
	CHECK(left_out == 4); // two threads, two children
	CHECK(lanes[1].kind == "thread");
	CHECK(lanes[2].kind == "softirq");
}

TEST_CASE("reducing loses no time, whatever the limits")
{
	Explanation e = Made();
	ReportClock clock = ClockOf(e);
	ReportLanes whole = ReduceLanes(LanesOf(e), clock, {});
	REQUIRE(whole.shortest_ns == 0);
	LaneLimits tight;
	tight.spans = 500;
	tight.cells = 3000;
	ReportLanes reduced = ReduceLanes(LanesOf(e), clock, tight);
	CHECK(reduced.span_start.size() <= 500);
	CHECK(reduced.cell_index.size() <= 3000);
	CHECK(reduced.spans_total == whole.spans_total);
	CHECK(reduced.shortest_ns > 20'000);
	CHECK(reduced.cell_ns > whole.cell_ns);
	for (size_t lane = 0; lane < whole.lanes.size(); lane++) {
		INFO(whole.lanes[lane].name);
		auto before = TimesOf(whole, lane, clock), after = TimesOf(reduced, lane, clock);
		for (const auto &[cause, ns] : before) {
			INFO(LaneCauseName(cause));
			CHECK(after[cause] == Approx(ns).epsilon(0.01).margin(5e5));
		}
	}
	// What is kept are the longest.
	for (size_t i = 0; i < reduced.span_length.size(); i++)
		REQUIRE((reduced.span_length[i] + 1) * clock.tick_ns >= reduced.shortest_ns);
}

TEST_CASE("a lane's time is its timeline's")
{
	Explanation e = Made();
	ReportClock clock = ClockOf(e);
	ReportLanes reduced = ReduceLanes(LanesOf(e), clock, {});
	CauseTimes wanted = {};
	AddTimes(e.timelines[0], e.run.start_ns, e.run.end_ns, &wanted);
	std::map<int, double> times = TimesOf(reduced, 0, clock);
	for (int c = 0; c < kTimelineCauses; c++) {
		if (c == Index(Cause::Idle))
			continue; // empty ground
		INFO(LaneCauseName(c));
		CHECK(times[c] ==
		      Approx(static_cast<double>(wanted[static_cast<size_t>(c)])).epsilon(0.01).margin(1e6));
	}
}

TEST_CASE("slices and spans ascend in every lane")
{
	Explanation e = Made();
	LaneLimits tight;
	tight.spans = 1000;
	ReportLanes r = ReduceLanes(LanesOf(e), ClockOf(e), tight);
	for (size_t lane = 0; lane < r.lanes.size(); lane++) {
		auto cells = r.cell_index.begin() + static_cast<ptrdiff_t>(r.cells[lane].first);
		CHECK(std::is_sorted(cells, cells + static_cast<ptrdiff_t>(r.cells[lane].count)));
		auto spans = r.span_start.begin() + static_cast<ptrdiff_t>(r.spans[lane].first);
		CHECK(std::is_sorted(spans, spans + static_cast<ptrdiff_t>(r.spans[lane].count)));
	}
	for (uint16_t detail : r.span_detail)
		REQUIRE(detail < r.details.size());
}

TEST_CASE("disk requests join while they overlap, and say who issued them")
{
	Explanation e;
	e.run.start_ns = 1;
	e.run.end_ns = 1 + 1000 * kMs;
	e.serving = {-1};
	e.timelines.resize(1);
	auto io = [&](uint64_t at_ms, uint64_t ms, uint8_t kind, const char *comm) {
		ft_io x = {};
		x.start_ns = 1 + at_ms * kMs;
		x.duration_ns = ms * kMs;
		x.bytes = 1'000'000;
		x.dev = 8u << 20 | 16;
		x.write = kind;
		snprintf(x.comm, sizeof x.comm, "%s", comm);
		e.run.ios.push_back(x);
	};
	io(100, 20, 1, "kworker/0");
	io(110, 30, 1, "redis-server");
	io(112, 1, 0, "cat");
	io(200, 10, 1, "kworker/0");
	io(205, 3, 3, "jbd2");
	ReportClock clock(e.run.start_ns, e.run.end_ns, e.run.start_ns);
	std::vector<Lane> lanes = LanesOf(e);
	REQUIRE(lanes.size() == 3);
	CHECK(lanes[0].note == "read");
	const Lane &write = lanes[1];
	CHECK(write.name == "8:16");
	CHECK(write.note == "write");
	REQUIRE(write.spans.size() == 2);
	CHECK(write.spans[0].end_ns - write.spans[0].start_ns == 40 * kMs);
	std::string text = write.describe(write.spans[0]);
	CHECK(text.find("2 requests, 2.00 MB, the longest 30.0 ms") == 0);
	CHECK(text.find("redis-server") != std::string::npos);
	// The rate sums to the bytes.
	double bytes = 0;
	for (float rate : write.rate)
		bytes += rate * static_cast<double>(write.rate_step_ns) / 1e9;
	CHECK(bytes == Approx(3'000'000).epsilon(1e-4));
	CHECK(lanes[2].note == "flush");
}

TEST_CASE("metrics are charts of what was not zero, partitions left out")
{
	Explanation e = Made(10);
	ReportClock clock = ClockOf(e);
	std::vector<MetricChart> charts = CollectMetrics(e.run, clock);
	std::vector<std::string> names;
	for (const MetricChart &chart : charts) {
		names.push_back(chart.name);
		CHECK(std::is_sorted(chart.times.begin(), chart.times.end()));
		for (const MetricLine &line : chart.lines)
			CHECK(line.values.size() == chart.times.size());
	}
	CHECK(names == std::vector<std::string>{"Server CPU", "Server memory", "Server faults", "Host CPU",
						"Disk vda"});
	CHECK(charts[3].lines.size() == 3);

	// A value that did not change is written once and holds; one that comes late is missing before.
	Series &steady = e.run.series[3];
	REQUIRE(steady.name == "target.cpu");
	steady.samples = {{e.run.start_ns + 1000 * kMs, 50}, {e.run.start_ns + 5000 * kMs, 70}};
	MetricChart held = CollectMetrics(e.run, clock)[0];
	CHECK(std::isnan(held.lines[0].values[5]));
	CHECK(held.lines[0].values[11] == 50);
	CHECK(held.lines[0].values[48] == 50);
	CHECK(held.lines[0].values[51] == 70);
	CHECK(held.lines[0].values.back() == 70);

	e = Made(10);
	std::vector<MetricChart> few = CollectMetrics(e.run, clock, 10);
	CHECK(few[0].times.size() <= 10);
	CHECK(few[0].lines[0].values.size() == few[0].times.size());
	CHECK(few[0].lines[0].values[0] == Approx(63).margin(8));
}

// SPDX-License-Identifier: MIT
// Lanes: their content, and that fitting them into a page loses no time.
#include <cmath>
#include <map>
#include <memory>

#include "analysis/report/page_data.h"
#include "tests/support/catch.h"
#include "tests/support/sample_explanation.h"

using namespace forktail::analysis;
using namespace forktail::analysis::report;

namespace
{

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kAroundNs = 200 * kMs; // a stretch: a window of tallies needs all of its spans

ReportClock ClockOf(const Explanation &e)
{
	return ReportClock(e.run.start_ns, e.run.end_ns, e.zero_ns);
}

Explained Made(size_t spans = 2000)
{
	SampleSize size;
	size.seconds = 10;
	size.rate = 1000;
	size.spans = spans;
	return SampleExplanation(size);
}

ReportLanes LanesOf(const Explained &e, const LaneLimits &limits = {})
{
	return MakeLanes(e, e.reading.get(), ClockOf(e), limits);
}

// Keeps, of the records, those that overlap [from_ns, to_ns).
template <typename Records, typename End>
void Leave(Records *records, uint64_t from_ns, uint64_t to_ns, End end_of)
{
	Records all = *records;
	*records = {};
	for (const auto &r : all)
		if (r.start_ns < to_ns && end_of(r) > from_ns)
			records->push_back(r);
}

// Makes an explanation read its run in stretches of this length. Thread records are then available only for
// the current stretch and a little around it.
void CutUp(uint64_t stretch_ns, Explained *e)
{
	e->reading->stretches.each = [e, stretch_ns,
				      whole = std::make_shared<const Run>(e->run)](const auto &see) {
		for (uint64_t from = 0; from < whole->end_ns;) {
			uint64_t to = std::max(from, whole->start_ns) + stretch_ns;
			if (to >= whole->end_ns)
				to = UINT64_MAX;
			Run &run = e->run;
			run = *whole;
			run.loaded_from_ns = from - std::min(from, kAroundNs);
			run.loaded_to_ns = to == UINT64_MAX ? to : to + kAroundNs;
			auto lasts = [](const auto &r) { return r.start_ns + r.duration_ns; };
			Leave(&run.spans, run.loaded_from_ns, run.loaded_to_ns, lasts);
			Leave(&run.ios, run.loaded_from_ns, run.loaded_to_ns, lasts);
			Leave(&run.tallies, run.loaded_from_ns, run.loaded_to_ns,
			      [](const ft_tally &t) { return t.end_ns; });
			IndexStretch(&run);
			for (Timeline &t : e->reading->timelines)
				t = BuildTimeline(run, t.thread);
			see(from, to);
			from = to;
		}
	};
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
	Explained e = Made();
	const ReportLanes r = LanesOf(e);
	const std::vector<Lane> &lanes = r.lanes;
	std::map<std::string, int> kinds;
	for (size_t lane = 0; lane < lanes.size(); lane++) {
		kinds[lanes[lane].kind]++;
		CHECK_FALSE(lanes[lane].name.empty());
		const LaneRange &spans = r.spans[lane];
		for (size_t i = spans.first + 1; i < spans.first + spans.count; i++)
			REQUIRE(r.span_start[i] >= r.span_start[i - 1] + r.span_length[i - 1]);
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

TEST_CASE("lanes of a recorded load generator are its own, below the server's, and not a second server")
{
	Explained e = Made();
	Thread load;
	load.tid = load.tgid = 1; // before the server's
	load.flags = FT_THREAD_CLIENT | FT_THREAD_MAIN;
	load.comm = "load-0";
	load.role = "load generator";
	load.start_ns = e.run.start_ns;
	load.end_ns = e.run.end_ns;
	e.run.threads.push_back(load);
	std::vector<Lane> lanes = LanesOf(e).lanes;
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

TEST_CASE("threads beyond the limit are counted, children have a lane if one of them is the server's")
{
	Explained e = Made();
	LaneLimits limits;
	limits.threads = 2;
	ReportLanes r = LanesOf(e, limits);
	CHECK(r.threads_left_out == 4); // two threads, two children
	CHECK(r.lanes[1].kind == "thread");
	CHECK(r.lanes[2].kind == "softirq");
}

TEST_CASE("reducing loses no time, whatever the limits")
{
	Explained e = Made();
	ReportClock clock = ClockOf(e);
	ReportLanes whole = LanesOf(e);
	REQUIRE(whole.shortest_ns == 0);
	LaneLimits tight;
	tight.spans = 500;
	tight.cells = 3000;
	ReportLanes reduced = LanesOf(e, tight);
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
	// The longest ones stay.
	for (size_t i = 0; i < reduced.span_length.size(); i++)
		REQUIRE((reduced.span_length[i] + 1) * clock.tick_ns >= reduced.shortest_ns);
}

TEST_CASE("a lane's time is its timeline's")
{
	Explained e = Made();
	ReportClock clock = ClockOf(e);
	ReportLanes reduced = LanesOf(e);
	CauseTimes wanted = {};
	AddTimes(e.reading->timelines[0], e.run.start_ns, e.run.end_ns, &wanted);
	std::map<int, double> times = TimesOf(reduced, 0, clock);
	for (int c = 0; c < kTimelineCauses; c++) {
		if (c == Index(Cause::Idle))
			continue; // empty background
		INFO(LaneCauseName(c));
		CHECK(times[c] ==
		      Approx(static_cast<double>(wanted[static_cast<size_t>(c)])).epsilon(0.01).margin(1e6));
	}
}

TEST_CASE("slices and spans are ordered in every lane")
{
	Explained e = Made();
	LaneLimits tight;
	tight.spans = 1000;
	ReportLanes r = LanesOf(e, tight);
	for (size_t lane = 0; lane < r.lanes.size(); lane++) {
		auto cells = r.cell_index.begin() + static_cast<ptrdiff_t>(r.cells[lane].first);
		CHECK(std::is_sorted(cells, cells + static_cast<ptrdiff_t>(r.cells[lane].count)));
		auto spans = r.span_start.begin() + static_cast<ptrdiff_t>(r.spans[lane].first);
		CHECK(std::is_sorted(spans, spans + static_cast<ptrdiff_t>(r.spans[lane].count)));
	}
	for (uint16_t detail : r.span_detail)
		REQUIRE(detail < r.details.size());
}

TEST_CASE("disk requests join while they overlap, and name the processes that issued them")
{
	Explained e;
	e.run.start_ns = 1;
	e.run.end_ns = 1 + 1000 * kMs;
	e.serving = {-1};
	e.reading->timelines.resize(1);
	auto io = [&](uint64_t at_ms, uint64_t ms, uint8_t kind, const char *comm) {
		ft_io x = {};
		x.start_ns = 1 + at_ms * kMs;
		x.duration_ns = ms * kMs;
		x.bytes = 1'000'000;
		x.dev = 8u << 20 | 16;
		x.write = kind;
		snprintf(x.comm.raw, sizeof x.comm.raw, "%s", comm);
		e.run.ios.push_back(x);
	};
	io(100, 20, 1, "kworker/0");
	io(110, 30, 1, "redis-server");
	io(112, 1, 0, "cat");
	io(200, 10, 1, "kworker/0");
	io(205, 3, 3, "jbd2");
	e.zero_ns = e.run.start_ns;
	const ReportLanes r = LanesOf(e);
	const std::vector<Lane> &lanes = r.lanes;
	REQUIRE(lanes.size() == 3);
	CHECK(lanes[0].note == "read");
	const Lane &write = lanes[1];
	CHECK(write.name == "8:16");
	CHECK(write.note == "write");
	REQUIRE(r.spans[1].count == 2);
	CHECK(r.span_length[r.spans[1].first] * ClockOf(e).tick_ns == 40 * kMs);
	std::string text = r.details[r.span_detail[r.spans[1].first]];
	CHECK(text.find("2 requests, 2.00 MB, longest 30.0 ms") == 0);
	CHECK(text.find("redis-server") != std::string::npos);
	// The rate sums to the number of bytes.
	double bytes = 0;
	for (float rate : write.rate)
		bytes += rate * static_cast<double>(write.rate_step_ns) / 1e9;
	CHECK(bytes == Approx(3'000'000).epsilon(1e-4));
	CHECK(lanes[2].note == "flush");
}

namespace
{

void CheckSame(const ReportLanes &cut, const ReportLanes &whole)
{
	REQUIRE(cut.lanes.size() == whole.lanes.size());
	for (size_t i = 0; i < whole.lanes.size(); i++) {
		INFO(whole.lanes[i].name);
		CHECK(cut.lanes[i].name == whole.lanes[i].name);
		CHECK(cut.lanes[i].note == whole.lanes[i].note);
		CHECK(cut.lanes[i].life == whole.lanes[i].life);
		CHECK(cut.lanes[i].rate == whole.lanes[i].rate);
		CHECK(cut.spans[i].count == whole.spans[i].count);
		CHECK(cut.cells[i].count == whole.cells[i].count);
	}
	CHECK(cut.spans_total == whole.spans_total);
	CHECK(cut.shortest_ns == whole.shortest_ns);
	CHECK(cut.span_start == whole.span_start);
	CHECK(cut.span_length == whole.span_length);
	CHECK(cut.span_cause == whole.span_cause);
	CHECK(cut.span_detail == whole.span_detail);
	CHECK(cut.details == whole.details);
	CHECK(cut.cell_ns == whole.cell_ns);
	CHECK(cut.cell_index == whole.cell_index);
	CHECK(cut.cell_cause == whole.cell_cause);
	REQUIRE(cut.cell_share.size() == whole.cell_share.size());
	for (size_t i = 0; i < whole.cell_share.size(); i++)
		REQUIRE(std::abs(cut.cell_share[i] - whole.cell_share[i]) <= 1); // sums in another order
}

} // namespace

TEST_CASE("a run in stretches has the same lanes as the whole run")
{
	LaneLimits tight;
	tight.spans = GENERATE(500u, 200'000u);
	tight.cells = GENERATE(400u, 3000u, 100'000u);
	uint64_t stretch_ns = GENERATE(137u, 1000u, 9000u) * kMs;
	INFO(tight.spans << " spans, " << tight.cells << " cells, stretches of " << stretch_ns << " ns");
	Explained e = Made();
	ReportLanes whole = LanesOf(e, tight);
	CutUp(stretch_ns, &e);
	CheckSame(LanesOf(e, tight), whole);
}

TEST_CASE("a span across stretches is one span, with the same text as in the whole run")
{
	Explained e;
	e.run.start_ns = e.zero_ns = 1;
	e.run.end_ns = 1 + 4000 * kMs;
	e.run.details = {{}, {"appendonly.aof", {}}};
	Thread t;
	t.tid = t.tgid = 7;
	t.comm = "server";
	t.start_ns = 1;
	t.end_ns = e.run.end_ns;
	e.run.threads = {t};
	auto add = [&](uint64_t at_ms, uint64_t ms, uint8_t owner, uint32_t detail) {
		ft_span s = {};
		s.start_ns = 1 + at_ms * kMs;
		s.duration_ns = s.on_cpu_ns = ms * kMs;
		s.tid = 7;
		s.owner = owner;
		s.detail = detail;
		e.run.spans.push_back(s);
	};
	// A write over three boundaries, with an interrupt at the second one, and a write that ends at a
	// boundary.
	add(100, 2500, FT_FILE_WRITE, 1);
	add(1990, 20, FT_SOFTIRQ + 3, 0);
	add(2900, 100, FT_FILE_WRITE, 1);
	add(3000, 50, FT_FILE_WRITE, 1);
	for (uint64_t at_ms : {990, 1005, 1500}) { // the first two are one piece of work
		ft_io io = {};
		io.start_ns = 1 + at_ms * kMs;
		io.duration_ns = 20 * kMs;
		io.bytes = 4096;
		e.run.ios.push_back(io);
	}
	IndexRun(&e.run);
	e.run.start_ns = 1;
	e.serving = {-1};
	e.reading->timelines.resize(1);
	ReportLanes whole = LanesOf(e);
	e.reading->timelines.clear();
	CutUp(1000 * kMs, &e);
	ReportLanes cut = LanesOf(e);
	REQUIRE(cut.spans[0].count == 5);
	CHECK(cut.details[cut.span_detail[0]] == "part of a file-write of 2.50 s\nappendonly.aof");
	CHECK(cut.span_length[0] == 1890 * kMs);
	CHECK(cut.spans[1].count == 1);
	CHECK(cut.spans[2].count == 2);
	CheckSame(cut, whole);
}

TEST_CASE("metrics are charts of non-zero values, without partitions")
{
	Explained e = Made(10);
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

	// An unchanged value is written once and remains valid. A metric that starts late is missing before
	// that.
	Series &steady = e.run.series[3];
	REQUIRE(steady.name == "target.cpu");
	steady.samples = {{e.run.start_ns + 1000 * kMs, 50}, {e.run.start_ns + 5000 * kMs, 70}};
	MetricChart held = CollectMetrics(e.run, clock)[0];
	CHECK(std::isnan(held.lines[0].values[5]));
	CHECK(held.lines[0].values[11] == 50);
	CHECK(held.lines[0].values[48] == 50);
	CHECK(held.lines[0].values[51] == 70);
	CHECK(held.lines[0].values.back() == 70);

	std::vector<MetricChart> few = CollectMetrics(Made(10).run, clock, 10);
	CHECK(few[0].times.size() <= 10);
	CHECK(few[0].lines[0].values.size() == few[0].times.size());
	CHECK(few[0].lines[0].values[0] == Approx(63).margin(8));
}

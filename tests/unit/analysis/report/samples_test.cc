// SPDX-License-Identifier: MIT
// CPU samples on the page: each has its stack, those of episodes come first, and dropped ones add their
// weight to others.
#include <algorithm>
#include <numeric>

#include "analysis/report/page_data.h"
#include "tests/support/catch.h"
#include "tests/support/sample_explanation.h"

using namespace forktail::analysis;
using namespace forktail::analysis::report;

namespace
{

Explained Made()
{
	SampleSize size;
	size.seconds = 10;
	size.rate = 1000;
	size.spans = 100;
	return SampleExplanation(size);
}

ReportSamples SamplesOf(const Explained &e, const SampleLimits &limits)
{
	ReportClock clock(e.run.start_ns, e.run.end_ns, e.zero_ns);
	SampleCollector collector(e, e.run, clock, limits);
	// In stretches, as a long run is read.
	uint64_t middle = (e.run.start_ns + e.run.end_ns) / 2;
	collector.Add(0, middle);
	collector.Add(middle, UINT64_MAX);
	return collector.Finish();
}

uint64_t TicksOf(const ReportSamples &s)
{
	return std::accumulate(s.length.begin(), s.length.end(), uint64_t{0});
}

// How many samples have a function on their stack.
size_t With(const ReportSamples &s, const std::string &function)
{
	size_t n = 0;
	for (uint16_t stack : s.stack)
		for (uint32_t f = s.stack_first[stack]; f < s.stack_first[stack + 1]; f++)
			n += s.functions[s.stack_frame[f]] == function;
	return n;
}

} // namespace

TEST_CASE("every sample is on the page with its stack, callers first")
{
	Explained e = Made();
	ReportSamples s = SamplesOf(e, {});
	CHECK(s.total == e.run.cpu_samples.size());
	CHECK(s.end.size() == e.run.cpu_samples.size());
	REQUIRE(s.threads.size() == 1);
	CHECK(s.threads[0].count == s.end.size());
	CHECK(std::is_sorted(s.end.begin(), s.end.end()));
	CHECK(With(s, "main") == s.end.size());
	CHECK(With(s, "keysCommand") == 499); // five in a hundred, except at the first instant
	uint16_t stack = s.stack[0];
	CHECK(s.functions[s.stack_frame[s.stack_first[stack]]] == "main");
	// The kernel's functions are on top.
	auto get =
	    std::find_if(s.stack.begin(), s.stack.end(), [&](uint16_t x) { return s.stack_kernel[x] > 0; });
	REQUIRE(get != s.stack.end());
	CHECK(s.stack_kernel[*get] == 2);
	CHECK(s.functions[s.stack_frame[s.stack_first[*get + 1u] - 1]] == "clear_page_erms");
	CHECK(std::find(s.activities.begin(), s.activities.end(), "command/KEYS") != s.activities.end());
}

TEST_CASE("of too many samples some represent all, and episodes keep theirs")
{
	Explained e = Made();
	SampleLimits limits;
	limits.far = 1000;
	ReportSamples all = SamplesOf(e, {}), few = SamplesOf(e, limits);
	REQUIRE(few.end.size() < all.end.size() / 2);
	CHECK(few.total == all.total);
	double share = static_cast<double>(TicksOf(few)) / static_cast<double>(TicksOf(all));
	CHECK(share == Approx(1).margin(0.02));
	auto within = [&](const ReportSamples &s) {
		ReportClock clock(e.run.start_ns, e.run.end_ns, e.zero_ns);
		size_t n = 0;
		for (uint32_t end : s.end)
			n += end >= clock.Tick(e.episodes[0].start_ns) &&
			     end <= clock.Tick(e.episodes[0].end_ns);
		return n;
	};
	CHECK(within(few) == within(all));
	CHECK(within(all) > 30);
}

TEST_CASE("a run without samples, or without a recorder, has none")
{
	Explained e = Made();
	e.run.cpu_samples = {};
	for (Thread &t : e.run.threads)
		t.cpu_sample_count = 0;
	CHECK(SamplesOf(e, {}).threads.empty());
	SampleSize size;
	size.seconds = 1;
	size.recorder = false;
	CHECK(SamplesOf(SampleExplanation(size), {}).end.empty());
}

// SPDX-License-Identifier: MIT
// Comparisons of synthetic runs: what is called worse, what is undecided, and how it is reported.
#include "analysis/compare.h"

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/made_runs.h"

using namespace forktail::analysis;
using namespace forktail::analysis::compare;
using forktail::test::MadeOptions;
using forktail::test::MadeRuns;

namespace
{

RunSample Plain(uint64_t p50, uint64_t p99, uint64_t p99_9)
{
	RunSample run;
	run.requests = 100'000;
	run.rate = 1000;
	run.seconds = 100;
	run.latencies = {p50, p50 * 2, p99, p99_9, p99_9 * 2, p99_9 * 3, 0};
	return run;
}

Comparison Same(size_t pairs, double factor)
{
	Comparison c;
	for (size_t i = 0; i < pairs; i++) {
		uint64_t wobble = 1000 * (i % 3);
		c.a.runs.push_back(Plain(100'000 + wobble, 1'000'000, 10'000'000 - wobble));
		c.b.runs.push_back(Plain(100'000, 1'000'000 + wobble, static_cast<uint64_t>(10e6 * factor)));
	}
	return c;
}

} // namespace

TEST_CASE("latency buckets are narrow and in order")
{
	for (uint64_t ns : {0ull, 1ull, 255ull, 256ull, 1000ull, 123'456'789ull, 1ull << 50}) {
		uint32_t bucket = LatencyBucket(ns);
		CHECK(BucketNs(bucket) <= ns);
		CHECK(ns < BucketNs(bucket + 1));
		CHECK(static_cast<double>(ns - BucketNs(bucket)) <= static_cast<double>(ns) / 128);
	}
}

TEST_CASE("a longer tail is worse, and its cause is named")
{
	Comparison c = Same(8, 1.5);
	for (RunSample &run : c.a.runs) {
		run.at_p99_9.known = true;
		run.at_p99_9.ns[static_cast<size_t>(Index(Cause::Fork))] = 9e6;
		run.forks.rss_bytes = 1'100'000'000;
	}
	for (RunSample &run : c.b.runs) {
		run.at_p99_9.known = true;
		run.at_p99_9.ns[static_cast<size_t>(Index(Cause::Fork))] = 14e6;
		run.forks.rss_bytes = 2'300'000'000;
	}
	Judge({}, &c);
	CHECK(c.verdict == Verdict::Worse);
	CHECK(ExitStatusOf(c) == 1);
	CHECK(c.percentiles[3].verdict == Verdict::Worse);
	CHECK(c.percentiles[0].verdict == Verdict::Same);
	CHECK(c.percentiles[3].holm_p == Approx(3.0 / 256));
	INFO(c.percentiles[3].sentence);
	CHECK(c.percentiles[3].sentence.find("fork +5.00 ms, because RSS 1.10 GB -> 2.30 GB") !=
	      std::string::npos);
	CHECK(ComparisonText(c, false).find("worse: B is more than 5 % worse at p99.9 (") == 0);
	nlohmann::json json = forktail::test::parse_json(ComparisonJson(c));
	CHECK(json["verdict"] == "worse");
	CHECK(json["percentiles"][3]["causes"][0]["cause"] == "fork");
	CHECK(ComparisonJunit(c).find("<failure") != std::string::npos);
}

TEST_CASE("the same, better, too few, and a single run")
{
	Comparison same = Same(8, 1.0);
	Judge({}, &same);
	CHECK(same.verdict == Verdict::Same);
	CHECK(ExitStatusOf(same) == 0);
	Comparison better = Same(8, 0.5);
	Judge({}, &better);
	CHECK(better.verdict == Verdict::Better);
	CHECK(ExitStatusOf(better) == 0);
	Comparison few = Same(5, 1.5);
	Judge({}, &few);
	CHECK(few.verdict == Verdict::Inconclusive);
	CHECK(ExitStatusOf(few) == 4);
	CHECK(ComparisonJunit(few).find("<error") != std::string::npos);
	Comparison one = Same(1, 3);
	Judge({}, &one);
	CHECK(one.verdict == Verdict::Advisory);
	CHECK(ExitStatusOf(one) == 0);
	CHECK(ComparisonJunit(one).find("<skipped") != std::string::npos);
	// Worse, but by less than the difference between identical runs.
	Comparison noisy = Same(8, 1.15);
	CompareOptions options;
	options.noise = 0.3;
	Judge(options, &noisy);
	CHECK(noisy.verdict == Verdict::Same);
}

TEST_CASE("the largest difference comes first, and names cannot be markup")
{
	Comparison c = Same(6, 1);
	for (RunSample &run : c.a.runs)
		run.facts = {{"host", "kernel", "6.1.0"}, {"load", "rate", "1000"}, {"load", "seed", "1"}};
	for (RunSample &run : c.b.runs)
		run.facts = {
		    {"host", "kernel", "<b>|6.18|</b>"}, {"load", "rate", "1000"}, {"load", "seed", "2"}};
	Judge({}, &c);
	REQUIRE(c.facts.size() == 2);
	CHECK(c.facts[0].name == "kernel");
	CHECK(ComparisonMarkdown(c).find("<b>") == std::string::npos);
	CHECK(ComparisonMarkdown(c).find("&lt;b&gt;\\|6.18\\|") != std::string::npos);
}

// A smaller version of the whole evaluation in docs/reference/diff-and-gate.md. Fixed seeds give the same
// result each time.
TEST_CASE("identical sides are rarely called worse, a longer tail mostly, and intervals contain the truth")
{
	MadeRuns made(11);
	MadeOptions plain, longer;
	longer.longer = 1.2;
	plain.seconds = longer.seconds = 120;
	plain.per_second = longer.per_second = 100;
	CompareOptions strict;
	strict.allowed = 0;
	int alarms = 0, found = 0, covered = 0;
	constexpr int kComparisons = 60;
	for (int i = 0; i < kComparisons; i++) {
		alarms += made.Pairs(8, plain, plain, strict).verdict == Verdict::Worse;
		Comparison c = made.Pairs(8, plain, longer);
		found += c.verdict == Verdict::Worse;
		const Interval &interval = c.percentiles[3].ratio_interval;
		covered += interval.low <= 1.2 && 1.2 <= interval.high;
	}
	CHECK(alarms <= kComparisons * 10 / 100);
	CHECK(found >= kComparisons * 80 / 100);
	CHECK(covered >= kComparisons * 90 / 100);
}

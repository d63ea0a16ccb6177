// SPDX-License-Identifier: MIT
#include "tests/support/sample_comparison.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "analysis/timeline.h"

namespace forktail::analysis
{

namespace
{

constexpr double kMs = 1e6;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

analysis::compare::RunSample MakeRun(const char *side, size_t number, uint64_t fork_ns)
{
	analysis::compare::RunSample run;
	run.name = side + std::to_string(number);
	run.path = "/runs/" + run.name;
	run.requests = 20'000;
	run.seconds = 20;
	run.rate = 1000;
	run.latencies = {100'000, 150'000, 2'000'000, fork_ns / 2, fork_ns, fork_ns + 1'000'000, 0};
	run.by_second.resize(20);
	for (size_t s = 0; s < run.by_second.size(); s++) {
		std::map<uint32_t, uint32_t> counts;
		for (uint32_t i = 0; i < 1000; i++)
			counts[analysis::compare::LatencyBucket(80'000 + i * 60)]++;
		if (s == 7)
			for (uint64_t waits = fork_ns; waits > 1'000'000; waits -= 1'000'000)
				counts[analysis::compare::LatencyBucket(waits)]++;
		run.by_second[s].latencies.assign(counts.begin(), counts.end());
	}
	return run;
}

analysis::compare::Difference Differs(const char *name, analysis::compare::Unit unit, double a, double b,
				      analysis::compare::Interval ratio, analysis::compare::Verdict verdict)
{
	analysis::compare::Difference d;
	d.name = name;
	d.unit = unit;
	d.a = a;
	d.b = b;
	d.ratio = a > 0 ? b / a : std::nan("");
	d.change = b - a;
	d.ratio_interval = ratio;
	d.change_interval = {ratio.known, a * (ratio.low - 1), a * (ratio.high - 1)};
	d.judged = verdict != analysis::compare::Verdict::Advisory;
	d.verdict = verdict;
	return d;
}

} // namespace

analysis::compare::Comparison SampleComparison(size_t pairs)
{
	analysis::compare::Comparison c;
	c.a.given = "runs/base";
	c.b.given = "runs/</script><script>alert(1)</script>";
	for (size_t i = 0; i < pairs; i++) {
		c.a.runs.push_back(MakeRun("a", i, 40'000'000));
		c.b.runs.push_back(MakeRun("b", i, 60'000'000));
	}
	c.advisory = pairs == 1;
	c.slow_ns = 1'000'000;
	c.facts = {{"host", "kernel", "6.1.0", "6.18.5", true},
		   {"configuration", "maxmemory", "0", "<img src=x onerror=alert(2)>", false},
		   {"server", "THP", "", "always", false}};
	const analysis::compare::Verdict worse = c.advisory ? analysis::compare::Verdict::Advisory
							    : analysis::compare::Verdict::Worse,
					 same = c.advisory ? analysis::compare::Verdict::Advisory
							   : analysis::compare::Verdict::Same;
	c.percentiles = {
	    Differs("p50", analysis::compare::Unit::Nanoseconds, 1e5, 1e5, {true, 0.98, 1.03}, same),
	    Differs("p99", analysis::compare::Unit::Nanoseconds, 2 * kMs, 2 * kMs, {false, 0, 0}, same),
	    Differs("p99.9", analysis::compare::Unit::Nanoseconds, 20 * kMs, 30 * kMs, {true, 1.3, kInfinite},
		    worse)};
	c.percentiles[2].causes = {{analysis::Cause::Fork, 18 * kMs, 29 * kMs}};
	c.percentiles[2].sentence = "p99.9 +10.0 ms: fork +11.0 ms, because RSS 1.1 -> 2.3 GB";
	c.throughput =
	    Differs("throughput", analysis::compare::Unit::PerSecond, 1000, 998, {true, 0.99, 1.01}, same);
	c.causes = {Differs(analysis::CauseName(analysis::Cause::Fork), analysis::compare::Unit::Seconds, 0.8,
			    1.8, {true, 2, 2.5}, worse),
		    Differs(analysis::CauseName(analysis::Cause::PageIn), analysis::compare::Unit::Seconds, 0,
			    0.1, {}, worse)};
	c.stalled = {Differs(analysis::CauseName(analysis::Cause::Fork), analysis::compare::Unit::Seconds,
			     0.04, 0.06, {true, 1.4, 1.6}, worse)};
	analysis::compare::EpisodeChange episode;
	episode.cause = analysis::Cause::Fork;
	episode.a = {pairs, 39 * pairs, 40'000'000, 41'000'000, 0.8};
	episode.b = {pairs, 59 * pairs, 60'000'000, 61'000'000, 1.8};
	episode.per_run = Differs(analysis::CauseName(analysis::Cause::Fork), analysis::compare::Unit::Count,
				  1, 2, {true, 1, 4}, worse);
	episode.per_run.judged = false;
	c.episodes = {episode};
	c.fork_seconds =
	    Differs("seconds in fork", analysis::compare::Unit::Seconds, 0.04, 0.06, {true, 1.4, 1.6}, worse);
	c.fork_longest =
	    Differs("longest fork", analysis::compare::Unit::Nanoseconds, 40 * kMs, 60 * kMs, {}, worse);
	c.rss = Differs("RSS", analysis::compare::Unit::Bytes, 1.1e9, 2.3e9, {}, worse);
	c.changes = {"p99.9 +10.0 ms: fork +11.0 ms, because RSS 1.1 -> 2.3 GB"};
	c.notes = {"a note of </script> what limits it"};
	c.verdict = worse;
	c.reason = "p99.9 is 50 % more, and 5 % are allowed";
	return c;
}

} // namespace forktail::analysis

// SPDX-License-Identifier: MIT
#include "tests/support/sample_comparison.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "analysis/timeline/causes.h"

namespace forktail
{

namespace
{

constexpr double kMs = 1e6;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

RunSample MakeRun(const char *side, size_t number, uint64_t fork_ns)
{
	RunSample run;
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
			counts[LatencyBucket(80'000 + i * 60)]++;
		if (s == 7)
			for (uint64_t waits = fork_ns; waits > 1'000'000; waits -= 1'000'000)
				counts[LatencyBucket(waits)]++;
		run.by_second[s].latencies.assign(counts.begin(), counts.end());
	}
	return run;
}

Difference Differs(const char *name, Unit unit, double a, double b, Interval ratio, Verdict verdict)
{
	Difference d;
	d.name = name;
	d.unit = unit;
	d.a = a;
	d.b = b;
	d.ratio = a > 0 ? b / a : std::nan("");
	d.change = b - a;
	d.ratio_interval = ratio;
	d.change_interval = {ratio.known, a * (ratio.low - 1), a * (ratio.high - 1)};
	d.judged = verdict != Verdict::Advisory;
	d.verdict = verdict;
	return d;
}

} // namespace

Comparison SampleComparison(size_t pairs)
{
	Comparison c;
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
	const Verdict worse = c.advisory ? Verdict::Advisory : Verdict::Worse,
		      same = c.advisory ? Verdict::Advisory : Verdict::Same;
	c.percentiles = {
	    Differs("p50", Unit::Nanoseconds, 1e5, 1e5, {true, 0.98, 1.03}, same),
	    Differs("p99", Unit::Nanoseconds, 2 * kMs, 2 * kMs, {false, 0, 0}, same),
	    Differs("p99.9", Unit::Nanoseconds, 20 * kMs, 30 * kMs, {true, 1.3, kInfinite}, worse)};
	c.percentiles[2].causes = {{Cause::Fork, 18 * kMs, 29 * kMs}};
	c.percentiles[2].sentence = "p99.9 +10.0 ms: fork +11.0 ms, because RSS 1.1 -> 2.3 GB";
	c.throughput = Differs("throughput", Unit::PerSecond, 1000, 998, {true, 0.99, 1.01}, same);
	c.causes = {Differs(CauseName(Cause::Fork), Unit::Seconds, 0.8, 1.8, {true, 2, 2.5}, worse),
		    Differs(CauseName(Cause::PageIn), Unit::Seconds, 0, 0.1, {}, worse)};
	c.stalled = {Differs(CauseName(Cause::Fork), Unit::Seconds, 0.04, 0.06, {true, 1.4, 1.6}, worse)};
	EpisodeChange episode;
	episode.cause = Cause::Fork;
	episode.a = {pairs, 39 * pairs, 40'000'000, 41'000'000, 0.8};
	episode.b = {pairs, 59 * pairs, 60'000'000, 61'000'000, 1.8};
	episode.per_run = Differs(CauseName(Cause::Fork), Unit::Count, 1, 2, {true, 1, 4}, worse);
	episode.per_run.judged = false;
	c.episodes = {episode};
	c.fork_seconds = Differs("seconds in fork", Unit::Seconds, 0.04, 0.06, {true, 1.4, 1.6}, worse);
	c.fork_longest = Differs("longest fork", Unit::Nanoseconds, 40 * kMs, 60 * kMs, {}, worse);
	c.rss = Differs("RSS", Unit::Bytes, 1.1e9, 2.3e9, {}, worse);
	c.changes = {"p99.9 +10.0 ms: fork +11.0 ms, because RSS 1.1 -> 2.3 GB"};
	c.notes = {"a note of </script> what limits it"};
	c.verdict = worse;
	c.reason = "p99.9 is 50 % more, and 5 % are allowed";
	return c;
}

} // namespace forktail

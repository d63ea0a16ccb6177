// SPDX-License-Identifier: MIT
// The bootstrap of one pair of runs, on synthetic series: each second is similar to the one before it, and
// the difference of the sides is known.
#include "analysis/compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/support/catch.h"

using namespace forktail::analysis;
using namespace forktail::analysis::compare;

namespace
{

constexpr size_t kP50 = 0, kP99 = 2, kP9999 = 4;

struct SyntheticOptions {
	int seconds = 600, per_second = 20;
	double factor = 1;     // of all latencies
	uint64_t fork_ms = 10; // of requests' time, in about every third second
	double after = 0.6;    // how similar a second is to the one before it
};

// Its level drifts (AR(1) of its logarithm).
RunSample SyntheticSample(uint64_t seed, const SyntheticOptions &o)
{
	Random random(seed);
	auto normal = [&] { // Box and Muller
		return std::sqrt(-2 * std::log(1 - random.Uniform())) *
		       std::cos(2 * std::acos(-1.0) * random.Uniform());
	};
	RunSample run;
	double drift = 0.2 * normal();
	for (int s = 0; s < o.seconds; s++) {
		drift = o.after * drift + 0.2 * std::sqrt(1 - o.after * o.after) * normal();
		std::map<uint32_t, uint32_t> counts;
		for (int i = 0; i < o.per_second; i++)
			counts[LatencyBucket(
			    static_cast<uint64_t>(o.factor * 1e6 * std::exp(drift + 0.3 * normal())))]++;
		SecondOfRun second;
		second.latencies.assign(counts.begin(), counts.end());
		if (random.Uniform() < 1.0 / 3) {
			second.cause_ns = {{Cause::Fork, o.fork_ms * 1'000'000}};
			second.episodes = {Cause::Fork};
		}
		run.by_second.push_back(second);
	}
	return run;
}

bool Holds(const Interval &interval, double value)
{
	return interval.known && interval.low <= value && value <= interval.high;
}

} // namespace

TEST_CASE("intervals of one pair contain the true difference about as often as stated")
{
	constexpr int kPairs = 100;
	SyntheticOptions a, b;
	b.factor = 1.1;
	int known = 0, p50 = 0, p99 = 0;
	for (uint64_t seed = 1; seed <= kPairs; seed++) {
		const PairIntervals i =
		    BootstrapPair(SyntheticSample(2 * seed, a), SyntheticSample(2 * seed + 1, b), seed, 100);
		known += i.log_ratio[kP50].known && i.log_ratio[kP99].known;
		p50 += Holds(i.log_ratio[kP50], std::log(b.factor));
		p99 += Holds(i.log_ratio[kP99], std::log(b.factor));
	}
	INFO("p50 in " << p50 << ", p99 in " << p99 << " of " << known);
	CHECK(known > kPairs * 9 / 10);
	// Seconds that depend on each other carry less information than independent ones. An interval of 95 %
	// therefore contains the truth somewhat less often. One that takes seconds as independent contains it
	// in seven of ten pairs.
	CHECK(p50 > known * 85 / 100);
	CHECK(p99 > known * 85 / 100);
	CHECK(p50 < known);
	CHECK(p99 < known);
}

TEST_CASE("the same seed draws the same, another seed draws differently")
{
	const RunSample a = SyntheticSample(1, {}), b = SyntheticSample(2, {});
	const PairIntervals once = BootstrapPair(a, b, 7, 200), again = BootstrapPair(a, b, 7, 200),
			    other = BootstrapPair(a, b, 8, 200);
	for (size_t q = 0; q < kQuantiles; q++) {
		CHECK(once.log_ratio[q].low == again.log_ratio[q].low);
		CHECK(once.log_ratio[q].high == again.log_ratio[q].high);
	}
	CHECK(once.log_ratio[kP50].low != other.log_ratio[kP50].low);
	CHECK(once.log_ratio[kP50].low < once.log_ratio[kP50].high);
}

TEST_CASE("rates, causes and episodes of a pair have intervals too")
{
	SyntheticOptions a, b;
	b.per_second = 30;
	b.fork_ms = 30;
	const PairIntervals i = BootstrapPair(SyntheticSample(3, a), SyntheticSample(4, b), 1);
	CHECK(i.why.find("p99.99") != std::string::npos); // of 12,000 requests
	CHECK(i.why.find("p50") == std::string::npos);
	CHECK_FALSE(i.log_ratio[kP9999].known);
	// Each second has the same number of requests, so nothing varies.
	CHECK(i.rate_log_ratio.low == Approx(std::log(1.5)));
	CHECK(i.rate_log_ratio.high == Approx(std::log(1.5)));
	const size_t fork = static_cast<size_t>(Index(Cause::Fork)),
		     fsync = static_cast<size_t>(Index(Cause::Fsync));
	// About 200 seconds with 10 ms against as many with 30 ms.
	CHECK(Holds(i.request_seconds[fork], 4));
	CHECK(i.request_seconds[fork].low > 0);
	CHECK(Holds(i.episodes[fork], 0));
	CHECK(i.episodes[fork].low < i.episodes[fork].high);
	CHECK((i.request_seconds[fsync].known && i.request_seconds[fsync].high == 0));
}

TEST_CASE("too few blocks give no interval, and the affected percentiles are reported")
{
	SyntheticOptions independent, few;
	independent.after = few.after = 0;
	few.seconds = 29;
	RunSample enough = SyntheticSample(5, independent), short_one = SyntheticSample(6, few);
	for (const PairIntervals &i :
	     {BootstrapPair(enough, short_one, 1, 50), BootstrapPair(short_one, enough, 1, 50),
	      BootstrapPair(enough, RunSample(), 1, 50)}) {
		for (const Interval &interval : i.log_ratio)
			CHECK_FALSE(interval.known);
		CHECK_FALSE(i.rate_log_ratio.known);
		for (const char *name : {"p50, ", "p90, ", "p99, ", "p99.9, ", "p99.99:"})
			CHECK(i.why.find(name) != std::string::npos);
	}
	CHECK(BootstrapPair(enough, SyntheticSample(7, independent), 1, 50).log_ratio[kP50].known);
	// An episode of 11 s asks for blocks of 22 s, of which 600 s have 27.
	enough.longest_episode_ns = 11'000'000'000;
	CHECK_FALSE(BootstrapPair(enough, SyntheticSample(7, independent), 1, 50).log_ratio[kP50].known);
}

TEST_CASE("a long run is resampled in units of several seconds")
{
	SyntheticOptions a, b;
	a.seconds = 1300;
	b.seconds = 651;
	b.factor = 1.2;
	b.fork_ms = 20;
	const PairIntervals i = BootstrapPair(SyntheticSample(8, a), SyntheticSample(9, b), 1, 200);
	CHECK(Holds(i.log_ratio[kP50], std::log(1.2)));
	CHECK(i.log_ratio[kP50].low > 0);
	// An incomplete last unit has fewer requests and would make the rate vary.
	CHECK(i.rate_log_ratio.low == Approx(0).margin(1e-9));
	CHECK(i.rate_log_ratio.high == Approx(0).margin(1e-9));
}

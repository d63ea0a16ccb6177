// SPDX-License-Identifier: MIT
// Memory that does not grow with a run: exact ranks from several passes over the values, and blame that
// stores only the slowest requests.
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

#include <cmath>
#include <random>

#include "analysis/passes.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

// A server of 400 ms that is stopped now and then, and requests of all lengths.
RunBuilder Stopped(int requests)
{
	RunBuilder b;
	std::mt19937_64 random(7);
	b.Thread(kServer, 0, 400 * ms);
	for (uint64_t t = 0; t < 400; t += 20) {
		b.Off(FT_STOPPED, t * ms, (t + 1 + random() % 9) * ms, (t + 10) * ms);
		b.Off(FT_FSYNC, (t + 11) * ms, (t + 12) * ms, (t + 12) * ms);
	}
	for (int i = 0; i < requests; i++) {
		uint64_t due = random() % (390 * ms);
		b.Request(due, due, due + 1 + random() % (10 * ms));
	}
	b.Loop("closed");
	b.Finish();
	return b;
}

Blame BlameKeeping(RunBuilder *b, size_t kept)
{
	WholeLog log(b->run);
	BlameLimits limits;
	limits.kept = kept;
	return BlameLog(b->run, &log, CountRequests(b->run, &log), {b->Timeline()}, {1 * ms, 0}, {}, {},
			limits, {});
}

} // namespace

TEST_CASE("ranks are found exactly by reading values again")
{
	std::mt19937_64 random(3);
	auto kind = GENERATE(range(0, 5));
	std::vector<uint64_t> values(kind == 4 ? 400'000 : 1 + random() % 3000);
	for (uint64_t &v : values)
		switch (kind) {
		case 0:
			v = random() % 5000;
			break;
		case 1:
			v = 17; // all alike
			break;
		case 2:
			v = random() >> (random() % 60);
			break;
		case 3:
			v = random() % 2 ? 0 : UINT64_MAX - random() % 3;
			break;
		default: // more values in one slot than are stored, and a slot that is wider than one
			v = (uint64_t{1} << 40) + random() % (uint64_t{1} << 28);
		}
	LogHistogram all;
	for (uint64_t v : values)
		all.Add(v);
	std::vector<uint64_t> ranks;
	for (double p : {0.1, 50.0, 90.0, 99.0, 99.99, 100.0})
		ranks.push_back(Rank(values.size(), p));
	RankFinder finder(all, ranks);
	int passes = 0;
	for (; !finder.Done() && passes < 5; passes++) {
		for (uint64_t v : values)
			finder.Add(v);
		finder.EndPass();
	}
	INFO("kind " << kind << ", passes " << passes);
	REQUIRE(finder.Done());
	std::sort(values.begin(), values.end());
	for (size_t i = 0; i < ranks.size(); i++)
		CHECK(finder.Value(i) == values[ranks[i] - 1]);
	CHECK(RankFinder(LogHistogram(), {0}).Done());
}

TEST_CASE("the range of a sample's percentile has the true one in about 95 % of samples")
{
	std::mt19937_64 random(11);
	std::exponential_distribution<double> latency(1e-6); // mean 1 ms, so p99.9 is 6.908 ms
	const double p99_9 = -std::log(0.001) * 1e6;
	int inside = 0;
	for (int i = 0; i < 400; i++) {
		LogHistogram sample;
		for (int k = 0; k < 20'000; k++)
			sample.Add(static_cast<uint64_t>(latency(random)));
		const PercentileRange range = RangeOf(sample, 99.9);
		inside += static_cast<double>(range.low) <= p99_9 && static_cast<double>(range.high) >= p99_9;
	}
	CHECK(inside >= 370);
	CHECK(inside <= 392); // a wider range would be no better
	LogHistogram few;
	for (int k = 0; k < 100; k++)
		few.Add(1000);
	CHECK(RangeOf(few, 99.9).high == 0);
	CHECK(RangeOf(few, 50).low == 1000);
	CHECK(RangeOf(LogHistogram(), 99).low == 0);
}

TEST_CASE("with little room the slowest are stored, and sums and percentiles cover all requests")
{
	RunBuilder b = Stopped(5000);
	const Blame all = BlameKeeping(&b, 100'000), some = BlameKeeping(&b, 100);
	REQUIRE(all.slow.size() > 1000);
	CHECK(all.kept_from_ns == 0);
	CHECK(some.slow_count == all.slow.size());
	CHECK(some.slow_ns == all.slow_ns);
	REQUIRE(some.causes.size() == all.causes.size());
	for (size_t c = 0; c < all.causes.size(); c++) {
		const CauseRow &one = all.causes[c], &other = some.causes[c];
		INFO(CauseName(one.cause));
		CHECK(one.cause == other.cause);
		CHECK(one.requests == other.requests);
		CHECK(one.direct_ns == other.direct_ns);
		CHECK(one.queued_ns == other.queued_ns);
		CHECK(one.without.p99 == other.without.p99);
		CHECK(one.without.p99_9 == other.without.p99_9);
		CHECK(one.without.p99_99 == other.without.p99_99);
		CHECK(one.without.max == other.without.max);
	}
	REQUIRE(some.hops.size() == all.hops.size());
	CHECK(some.hops[0].time_ns == all.hops[0].time_ns);
	CHECK(some.hops[0].requests == all.hops[0].requests);

	// The stored requests are the slowest ones of the whole.
	REQUIRE(some.slow.size() > 50);
	CHECK(some.slow.size() <= 100);
	size_t next = 0;
	for (const SlowRequest &r : all.slow) {
		if (r.latency_ns < some.kept_from_ns)
			continue;
		REQUIRE(next < some.slow.size());
		const SlowRequest &kept = some.slow[next++];
		CHECK(kept.index == r.index);
		uint64_t sum = 0;
		for (size_t p = kept.first_part; p < kept.first_part + size_t{kept.part_count}; p++)
			sum += some.parts[p].total_ns();
		CHECK(sum == r.latency_ns);
	}
	CHECK(next == some.slow.size());
}

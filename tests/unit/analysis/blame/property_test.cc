// SPDX-License-Identifier: MIT
// Properties of every run, tested on thousands of random ones: every nanosecond of a thread has an owner,
// every request's parts sum to its latency, and the percentiles without a cause equal a plain recomputation
// over all requests.
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

#include <map>
#include <random>

#include "analysis/evidence.h"
#include "analysis/passes.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

using Random = std::mt19937_64;

uint64_t Pick(Random &random, uint64_t low, uint64_t high)
{
	return std::uniform_int_distribution<uint64_t>(low, high)(random);
}

// Fills [from, to) with nested spans and gaps.
void RandomSpans(Random &random, RunBuilder *b, uint64_t from, uint64_t to, uint8_t depth,
		 uint32_t tid = kServer)
{
	uint64_t t = from;
	while (t < to) {
		t += Pick(random, 0, (to - from) / 8 + 1);
		uint64_t end = std::min(to, t + Pick(random, 1, (to - from) / 4 + 2));
		if (t >= end)
			break;
		ft_owner owner = static_cast<ft_owner>(Pick(random, 1, FT_FAULT_OTHER));
		if (Pick(random, 0, 2) == 0) {
			b->Off(owner, t, Pick(random, t, end), end, depth, tid);
		} else {
			b->Frame(owner, t, end, depth, UINT64_MAX, tid);
			if (depth < 4)
				RandomSpans(random, b, t, end, static_cast<uint8_t>(depth + 1), tid);
		}
		t = end;
	}
}

void RandomTallies(Random &random, RunBuilder *b, uint64_t to, uint32_t tid = kServer)
{
	for (uint64_t t = 0; t < to;) {
		uint64_t end = std::min(to, t + Pick(random, 1, to / 10 + 1));
		if (Pick(random, 0, 9))
			for (int i = 0; i < 4; i++)
				b->Tally(i ? static_cast<ft_owner>(Pick(random, 1, FT_FAULT_OTHER))
					   : FT_OWN_CODE,
					 t, end, Pick(random, 0, (end - t) / (i ? 4 : 1)), 3, tid);
		t = end;
	}
}

void RandomRequests(Random &random, RunBuilder *b, uint64_t to, int count, uint64_t longest)
{
	for (int i = 0; i < count; i++) {
		uint64_t due = Pick(random, 0, to), sent = due, end;
		if (Pick(random, 0, 1))
			sent += Pick(random, 0, longest / 4);
		end = sent +
		      (Pick(random, 0, 9) ? Pick(random, 1, longest / 50 + 1) : Pick(random, 1, longest));
		uint8_t status = Pick(random, 0, 30) ? FT_STATUS_OK : FT_STATUS_TIMEOUT;
		b->Request(due, sent, end, static_cast<uint32_t>(Pick(random, 0, 5)),
			   static_cast<uint8_t>(Pick(random, 0, 1)), status);
	}
}

// Set for most requests.
void RandomArrivals(Random &random, Requests *q)
{
	for (size_t i = 0; i < q->size(); i++)
		q->arrival_ns.push_back(Pick(random, 0, 4) ? Pick(random, q->sent_ns[i], q->end_ns[i]) : 0);
}

// A whole random run: a thread of random length, and requests that may be outside of it.
RunBuilder RandomRun(uint64_t seed, int requests)
{
	Random random(seed);
	RunBuilder b;
	uint64_t length = Pick(random, 1000, 200 * ms);
	b.run.min_span_ns = Pick(random, 0, 20 * us);
	b.Thread(kServer, length / 10, length);
	RandomSpans(random, &b, 0, length, 0);
	RandomTallies(random, &b, length);
	if (Pick(random, 0, 3) == 0)
		b.run.drops.push_back(
		    {kBase + length / 3, kBase + length / 2, 1, FT_DROP_RING, FT_DROP_TALLY});
	RandomRequests(random, &b, length, requests, length / 3 + 10);
	if (Pick(random, 0, 1))
		RandomArrivals(random, &b.run.requests);
	b.Loop(Pick(random, 0, 2) ? "constant" : "closed", static_cast<uint32_t>(Pick(random, 1, 3)));
	b.Finish();
	return b;
}

// The same with two servers behind it, one of them recorded for part of the time only. Idle spans of all
// threads, because they wait for each other.
RunBuilder RandomRunThrough(uint64_t seed, int requests)
{
	RunBuilder b = RandomRun(seed, requests);
	Random random(seed + 1);
	uint64_t length = Pick(random, 1000, 200 * ms);
	for (uint32_t tid : {200u, 300u}) {
		b.Thread(tid, tid == 300 ? length / 4 : 0, length);
		RandomSpans(random, &b, 0, length, 0, tid);
		RandomTallies(random, &b, length, tid);
	}
	for (ft_span &s : b.run.spans)
		if (s.off_cpu && s.depth == 0 && Pick(random, 0, 2))
			s.owner = FT_IDLE;
	b.run.servers = {"proxy"};
	b.run.behind = {{"one", "one"}, {"other", "other"}};
	for (int i = 0; i < requests; i++)
		b.run.requests.behind.push_back(static_cast<uint8_t>(Pick(random, 0, 2)));
	b.Finish();
	return b;
}

Blame BlameThroughProxy(RunBuilder *b, Threshold threshold)
{
	std::vector<Timeline> timelines;
	for (uint32_t tid : {kServer, 200u, 300u})
		timelines.push_back(b->Timeline(tid));
	return BlameRun(b->run, timelines, threshold);
}

void CheckWhatIf(const Blame &all, const Blame &tail)
{
	std::map<Cause, std::vector<uint64_t>> without;
	for (const CauseRow &row : all.causes)
		for (const SlowRequest &r : all.slow) {
			if (IsError(r.status))
				continue;
			uint64_t latency = r.latency_ns;
			for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++)
				if (all.parts[p].cause == row.cause)
					latency -= all.parts[p].total_ns();
			without[row.cause].push_back(latency);
		}
	for (const CauseRow &row : tail.causes) {
		INFO(CauseName(row.cause));
		std::vector<uint64_t> &values = without[row.cause];
		std::sort(values.begin(), values.end());
		Latencies want;
		want.p99 = values[Rank(values.size(), 99) - 1];
		want.p99_9 = values[Rank(values.size(), 99.9) - 1];
		want.p99_99 = values[Rank(values.size(), 99.99) - 1];
		want.max = values.back();
		auto same = [&](uint64_t is, uint64_t wanted) {
			if (IsStall(row.cause))
				return is == wanted;
			return is <= wanted + 100 &&
			       static_cast<double>(is) + 100 >= static_cast<double>(wanted) * 0.999;
		};
		INFO(row.without.p99 << " " << want.p99);
		REQUIRE(same(row.without.p99, want.p99));
		REQUIRE(same(row.without.p99_9, want.p99_9));
		REQUIRE(same(row.without.p99_99, want.p99_99));
		REQUIRE(same(row.without.max, want.max));
	}
}

} // namespace

TEST_CASE("any interval of any timeline is accounted for to the nanosecond")
{
	for (uint64_t seed = 0; seed < 300; seed++) {
		RunBuilder b = RandomRun(seed, 0);
		Timeline t = b.Timeline();
		Random random(seed);
		uint64_t end = b.run.end_ns - kBase + 1000;
		CauseTimes whole = {};
		AddTimes(t, kBase, kBase + end, &whole);
		for (int i = 0; i < 50; i++) {
			uint64_t from = Pick(random, 0, end), to = Pick(random, from, end), sum = 0;
			CauseTimes times = {};
			AddTimes(t, kBase + from, kBase + to, &times);
			for (int c = 0; c < kTimelineCauses; c++) {
				sum += times[static_cast<size_t>(c)];
				// A part is never more than the whole, except for the rounding of a mix at
				// either end.
				REQUIRE(times[static_cast<size_t>(c)] <= whole[static_cast<size_t>(c)] + 2);
			}
			REQUIRE(sum == to - from);
		}
	}
}

TEST_CASE("parts sum to the latency of every request of any run")
{
	size_t requests = 0;
	for (uint64_t seed = 1000; seed < 1300; seed++) {
		RunBuilder b = RandomRun(seed, 100);
		Blame blame = b.Blame();
		REQUIRE(blame.slow.size() == 100);
		for (const SlowRequest &r : blame.slow) {
			REQUIRE(PartsSum(blame, r) == r.latency_ns);
			REQUIRE(r.since_ns <= r.due_ns);
		}
		requests += blame.slow.size();
		uint64_t by_cause = 0, by_episode = 0;
		for (const CauseRow &row : blame.causes)
			by_cause += row.total_ns();
		for (const Episode &e : FindEpisodes(&blame))
			by_episode += e.time_ns;
		REQUIRE(by_cause == blame.slow_ns);
		REQUIRE(by_episode == blame.slow_ns);
	}
	CHECK(requests == 30'000);
}

TEST_CASE("percentiles without a cause equal a plain recomputation")
{
	for (uint64_t seed = 2000; seed < 2060; seed++) {
		INFO("seed " << seed);
		RunBuilder b = RandomRun(seed, 3000);
		Blame all = b.Blame({1, 0}), tail = b.Blame({0, 99});
		CheckWhatIf(all, tail);
	}
}

TEST_CASE("through a proxy the same properties hold, and hops sum to no more than the requests' time")
{
	for (uint64_t seed = 3000; seed < 3100; seed++) {
		INFO("seed " << seed);
		RunBuilder b = RandomRunThrough(seed, 300);
		Blame all = BlameThroughProxy(&b, {1, 0}), tail = BlameThroughProxy(&b, {0, 99});
		REQUIRE(all.slow.size() == 300);
		uint64_t by_hop = 0, at_none = 0;
		for (const SlowRequest &r : all.slow) {
			REQUIRE(PartsSum(all, r) == r.latency_ns);
			REQUIRE(r.since_ns <= r.due_ns);
			for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++) {
				REQUIRE(all.parts[p].total_ns() <= r.latency_ns);
				if (all.parts[p].hop == kNoHop)
					at_none += all.parts[p].total_ns();
			}
		}
		for (const HopRow &row : all.hops)
			by_hop += row.time_ns;
		REQUIRE(by_hop + at_none == all.slow_ns);
		CheckWhatIf(all, tail);
	}
}

TEST_CASE("records of any content cause no crash")
{
	for (uint64_t seed = 0; seed < 300; seed++) {
		Random random(seed);
		auto wild = [&] { return random() >> Pick(random, 0, 63); };
		RunBuilder b;
		b.Thread(kServer, wild(), wild());
		for (int i = 0; i < 40; i++) {
			ft_span &s = b.Frame(static_cast<ft_owner>(Pick(random, 0, 255)), 0, 0);
			s.start_ns = Pick(random, 0, 1) ? wild() : kBase + Pick(random, 0, 1000);
			s.duration_ns = Pick(random, 0, 1) ? wild() : Pick(random, 0, 1000);
			s.blocked_ns = Pick(random, 0, s.duration_ns);
			s.runnable_ns = wild();
			s.arg[0] = wild();
			s.arg[1] = wild();
			s.off_cpu = static_cast<uint8_t>(random());
			s.depth = static_cast<uint8_t>(random());
			s.syscall = static_cast<int16_t>(random());
			s.detail = static_cast<uint32_t>(wild());
			s.tid = static_cast<uint32_t>(Pick(random, 99, 101));
			b.run.tallies.push_back({wild(), wild(), wild(), wild(),
						 static_cast<uint32_t>(wild()), kServer,
						 static_cast<uint32_t>(Pick(random, 0, 50)), 0});
			b.run.ios.push_back({wild(), wild(), 0, 1, 2, 3, 1, 0, 0, {}});
			b.run.drops.push_back(
			    {wild(), wild(), 1, static_cast<uint32_t>(Pick(random, 0, 9)), 1});
			uint64_t due = wild() >> 2;
			b.Request(due, due + Pick(random, 0, 1000), due + Pick(random, 1000, 1u << 30));
		}
		b.Finish();
		Blame blame = b.Blame();
		for (const SlowRequest &r : blame.slow)
			REQUIRE(PartsSum(blame, r) == r.latency_ns);
		std::vector<Timeline> timelines;
		timelines.push_back(b.Timeline());
		std::vector<Episode> episodes = FindEpisodes(&blame);
		FindEvidence(b.run, timelines, blame, ActivitiesOf(b.run), 4, 100, &episodes);
		for (uint32_t t = 0; t < b.run.threads.size(); t++)
			REQUIRE(AccountOf(b.run, t).wall_ns >> 62 == 0);
	}
}

TEST_CASE("a histogram's percentile is at most one bucket below the exact one")
{
	Random random(5);
	for (int round = 0; round < 50; round++) {
		std::vector<uint64_t> values(1 + Pick(random, 0, 2000));
		LogHistogram h;
		for (uint64_t &v : values) {
			v = Pick(random, 0, 1) ? Pick(random, 0, 5000)
					       : Pick(random, 0, UINT64_MAX >> Pick(random, 2, 60));
			h.Add(v);
		}
		std::sort(values.begin(), values.end());
		for (double p : {1.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
			uint64_t exact = values[Rank(values.size(), p) - 1], floor = h.PercentileFloor(p);
			REQUIRE(floor <= exact);
			REQUIRE(static_cast<double>(floor) >=
				static_cast<double>(exact) * (1 - 1.0 / 1024) - 1);
		}
		REQUIRE(h.max == values.back());
	}
}

TEST_CASE("ranks are whole numbers even where binary fractions are not")
{
	CHECK(Rank(1000, 99.9) == 999);
	CHECK(Rank(1000, 99) == 990);
	CHECK(Rank(1000, 50) == 500);
	CHECK(Rank(1, 99.99) == 1);
	CHECK(Rank(0, 50) == 0);
	CHECK(Rank(10'000'000, 99.99) == 9'999'000);
	CHECK(Rank(3, 100) == 3);
}

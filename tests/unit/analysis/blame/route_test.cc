// SPDX-License-Identifier: MIT
// Routes use precomputed sums of steps and of whole pieces. Their results equal, to the nanosecond, a plain
// walk over the pieces of both threads that divides each piece again.
#include "analysis/blame.h"
#include "analysis/timeline.h"
#include "tests/support/catch.h"
#include "tests/unit/analysis/random_timeline.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

uint64_t TakeIdle(CauseTimes *times, bool own_code)
{
	uint64_t idle_ns = 0;
	for (Cause c : {Cause::Idle, Cause::Network, Cause::ServerBusy})
		if (c != Cause::ServerBusy || own_code)
			idle_ns += std::exchange((*times)[static_cast<size_t>(Index(c))], 0);
	return idle_ns;
}

void Add(const CauseTimes &from, CauseTimes *to)
{
	for (size_t c = 0; c < from.size(); c++)
		(*to)[c] += from[c];
}

// Computed by the rules alone.
void WalkPlainly(const Timeline &first, const Timeline &second, bool own_code, uint64_t from, uint64_t to,
		 CauseTimes *of_first, CauseTimes *of_second, uint64_t *between_ns)
{
	auto unknown = [&](uint64_t end) {
		(*of_first)[static_cast<size_t>(Index(Cause::Unknown))] += end - from;
		from = end;
	};
	while (from < to && from < first.start_ns())
		unknown(std::min(to, first.start_ns()));
	for (size_t i = 0; i + 1 < first.pieces.size() && from < to; i++) {
		uint64_t end = std::min(to, first.pieces[i + 1].start_ns);
		if (end <= from)
			continue;
		CauseTimes times = {}, all = {}, share = {};
		AddPiece(first, first.pieces[i], end - from, &times);
		uint64_t idle_ns = TakeIdle(&times, false);
		Add(times, of_first);
		AddTimes(second, from, end, &all);
		Apportion(idle_ns, all.data(), all.size(), share.data());
		*between_ns += TakeIdle(&share, own_code);
		Add(share, of_second);
		from = end;
	}
	while (from < to)
		unknown(to);
}

void WalkPlainly(const Route &r, First first, uint64_t from, uint64_t to, RouteTimes *times)
{
	if (first == First::Front)
		WalkPlainly(*r.front, *r.back, false, from, to, &times->front, &times->back,
			    &times->between_ns);
	else
		WalkPlainly(*r.back, *r.front, true, from, to, &times->back, &times->front,
			    &times->between_ns);
}

// Walks over each of the summed steps.
RouteTimes Plainly(const Route &r, First first, uint64_t from, uint64_t to)
{
	RouteTimes times;
	uint64_t step = uint64_t{1} << r.shift, last = r.start_ns + (r.sums[0].size() - 1) * step;
	uint64_t low = r.start_ns;
	while (low < from)
		low += step;
	uint64_t high = low;
	while (high + step <= std::min(to, last))
		high += step;
	if (low >= high) {
		WalkPlainly(r, first, from, to, &times);
		return times;
	}
	WalkPlainly(r, first, from, low, &times);
	for (uint64_t at = low; at < high; at += step)
		WalkPlainly(r, first, at, at + step, &times);
	WalkPlainly(r, first, high, to, &times);
	return times;
}

} // namespace

TEST_CASE("a route's sums equal a plain walk's on random timelines")
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		Random random(seed);
		const uint64_t start = 1000 * kMs, length = Pick(random, 1, 40) * kMs;
		const Timeline front = RandomTimeline(random, start + Pick(random, 0, 3 * kMs), length),
			       back = RandomTimeline(random, start + Pick(random, 0, 3 * kMs), length);
		const RouteGrid grid = GridOf(start, start + length, Pick(random, 2, 40));
		const Route route = BuildRoute(front, back, grid, start, start + length);
		for (int n = 0; n < 40; n++) {
			uint64_t from = Pick(random, start - kMs, start + length + 5 * kMs),
				 to = from + Pick(random, 0, Pick(random, 0, 1) ? length : 10'000);
			const First first = Pick(random, 0, 1) ? First::Front : First::Back;
			INFO("seed " << seed << ", [" << from << ", " << to << ")");
			RouteTimes times, plain = Plainly(route, first, from, to);
			times.between_ns = AddRouteTimes(route, first, from, to, &times.front, &times.back);
			CHECK(times.front == plain.front);
			CHECK(times.back == plain.back);
			CHECK(times.between_ns == plain.between_ns);
		}
	}
}

TEST_CASE("a route of a stretch gives the same for a request in it as the route of the whole run")
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		Random random(seed);
		const uint64_t start = 1000 * kMs, end = start + 40 * kMs;
		const Timeline front = RandomTimeline(random, start, 40 * kMs),
			       back = RandomTimeline(random, start, 40 * kMs);
		const RouteGrid grid = GridOf(start, end, Pick(random, 4, 40));
		const uint64_t from = Pick(random, start, end), to = Pick(random, from, end);
		const Route whole = BuildRoute(front, back, grid, start, end),
			    part = BuildRoute(front, back, grid, from, to);
		for (int n = 0; n < 20; n++) {
			const uint64_t sent = Pick(random, from, to), answered = Pick(random, sent, to);
			const Cuts cuts = CutsOf(whole, sent, answered), same = CutsOf(part, sent, answered);
			CHECK(cuts.passed_ns == same.passed_ns);
			CHECK(cuts.returned_ns == same.returned_ns);
			RouteTimes of_whole, of_part;
			of_whole.between_ns =
			    AddRequestTimes(whole, cuts, sent, answered, &of_whole.front, &of_whole.back);
			of_part.between_ns =
			    AddRequestTimes(part, cuts, sent, answered, &of_part.front, &of_part.back);
			INFO("seed " << seed << ", [" << from << ", " << to << "), [" << sent << ", "
				     << answered << ")");
			CHECK(of_whole.front == of_part.front);
			CHECK(of_whole.back == of_part.back);
			CHECK(of_whole.between_ns == of_part.between_ns);
		}
	}
}

TEST_CASE("the search for idle time finds the same as a walk over all marks")
{
	for (uint64_t seed = 0; seed < 30; seed++) {
		Random random(seed);
		const uint64_t start = 1000 * kMs, length = Pick(random, 1, 60) * kMs;
		const IdleTimes idle = IdleTimesOf(RandomTimeline(random, start, length));
		for (int n = 0; n < 300; n++) {
			uint64_t t = Pick(random, start - kMs, start + length + kMs);
			if (Pick(random, 0, 1) && !idle.begins.empty())
				t = idle.begins[Pick(random, 0, idle.begins.size() - 1)].at_ns;
			uint64_t after = UINT64_MAX, before = 0;
			for (size_t i = idle.begins.size(); i-- > 0;)
				if (idle.begins[i].at_ns >= t)
					after = idle.begins[i].known_ns;
			for (const IdleTimes::Mark &end : idle.ends)
				if (end.at_ns <= t)
					before = end.known_ns;
			INFO("seed " << seed << ", " << t);
			CHECK(idle.FirstAfter(t) == after);
			CHECK(idle.LastBefore(t) == before);
		}
	}
}

TEST_CASE("shares are the same in one word as in two")
{
	Random random(1);
	for (int n = 0; n < 2000; n++) {
		size_t count = Pick(random, 1, 50);
		std::vector<uint64_t> weights(count), one(count), two(count);
		unsigned __int128 total = 0;
		for (uint64_t &w : weights)
			total += w = Pick(random, 0, 2) ? Pick(random, 0, Pick(random, 1, UINT32_MAX)) : 0;
		uint64_t amount = Pick(random, 0, Pick(random, 1, UINT32_MAX));
		Apportion(amount, weights.data(), count, one.data());
		if (total)
			ApportionIn<unsigned __int128>(amount, weights.data(), count, total, two.data());
		else
			two[0] = amount;
		REQUIRE(one == two);
	}
}

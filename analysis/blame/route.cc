// SPDX-License-Identifier: MIT
// Both threads' times are summed up every 2 ms, or more in a long run, once for each of the two that may be
// looked at first: a request then costs a walk over the pieces at its ends, however long it took. Where
// idleness lies within a mix isn't known, so its begin is told at the latest and its end at the earliest that
// it can have been.
#include "route.h"

#include <algorithm>

#include "analysis/timeline/apportion.h"

namespace forktail
{

namespace
{

constexpr uint32_t kMinShift = 21; // 2 ms: a few pieces

// How much of a thread's time had nothing to do with the request: it waited. Of the second one, which the
// request is known not to wait for, its own code as well: that was for others.
uint64_t TakeIdle(CauseTimes *times, bool own_code)
{
	uint64_t idle_ns = 0;
	for (Cause c : {Cause::Idle, Cause::Network, Cause::ServerBusy}) {
		if (c == Cause::ServerBusy && !own_code)
			continue;
		idle_ns += (*times)[Index(c)];
		(*times)[Index(c)] = 0;
	}
	return idle_ns;
}

void Add(const CauseTimes &from, CauseTimes *to)
{
	for (int c = 0; c < kTimelineCauses; c++)
		(*to)[c] += from[c];
}

// Adds `ns` of the second's [from, to), in its proportions there. Returns how much of it was idle.
uint64_t AddShare(const Timeline &second, bool own_code, uint64_t from_ns, uint64_t to_ns, uint64_t ns,
		  CauseTimes *times)
{
	static_assert(kTimelineCauses <= static_cast<int>(kApportionMax));
	CauseTimes all = {}, share = {};
	AddTimes(second, from_ns, to_ns, &all);
	if (ns == to_ns - from_ns)
		share = all;
	else
		Apportion(ns, all.data(), all.size(), share.data());
	uint64_t idle_ns = TakeIdle(&share, own_code);
	Add(share, times);
	return idle_ns;
}

// Adds [from, to): the first's pieces, and where that is idle the second's. Returns the time in which both
// were (`own_code`: the second's own code counts as idle).
uint64_t AddOver(const Timeline &first, const Timeline &second, bool own_code, uint64_t from_ns,
		 uint64_t to_ns, CauseTimes *of_first, CauseTimes *of_second)
{
	if (from_ns >= to_ns)
		return 0;
	uint64_t from = std::max(from_ns, first.start_ns()), to = std::min(to_ns, first.end_ns());
	if (first.empty() || from >= to) {
		(*of_first)[Index(Cause::Unknown)] += to_ns - from_ns;
		return 0;
	}
	(*of_first)[Index(Cause::Unknown)] += (from - from_ns) + (to_ns - to);
	uint64_t between_ns = 0;
	for (uint32_t i = PieceAt(first, from); from < to; i++) {
		uint64_t end = std::min(to, first.pieces[i + 1].start_ns);
		CauseTimes times = {};
		AddPiece(first, first.pieces[i], end - from, &times);
		if (uint64_t idle_ns = TakeIdle(&times, false))
			between_ns += AddShare(second, own_code, from, end, idle_ns, of_second);
		Add(times, of_first);
		from = end;
	}
	return between_ns;
}

void AddWalking(const Route &route, First first, uint64_t from_ns, uint64_t to_ns, RouteTimes *times)
{
	times->between_ns +=
	    first == First::Front
		? AddOver(*route.front, *route.back, false, from_ns, to_ns, &times->front, &times->back)
		: AddOver(*route.back, *route.front, true, from_ns, to_ns, &times->back, &times->front);
}

bool HasIdle(const Timeline &t, const Piece &p)
{
	if (p.mix == kNoMix)
		return p.cause == Cause::Idle;
	const Mix &mix = t.mixes[p.mix];
	for (uint32_t i = 0; i < mix.part_count; i++)
		if (t.mix_parts[mix.first_part + i].cause == Cause::Idle)
			return true;
	return false;
}

} // namespace

uint64_t IdleTimes::FirstAfter(uint64_t t_ns) const
{
	auto found = std::lower_bound(begins.begin(), begins.end(), t_ns,
				      [](const Mark &m, uint64_t ns) { return m.at_ns < ns; });
	return found == begins.end() ? UINT64_MAX : found->known_ns;
}

uint64_t IdleTimes::LastBefore(uint64_t t_ns) const
{
	auto after = std::upper_bound(ends.begin(), ends.end(), t_ns,
				      [](uint64_t ns, const Mark &m) { return ns < m.at_ns; });
	return after == ends.begin() ? 0 : (after - 1)->known_ns;
}

IdleTimes IdleTimesOf(const Timeline &t)
{
	IdleTimes idle;
	for (size_t i = 0; i + 1 < t.pieces.size(); i++) {
		const Piece &p = t.pieces[i];
		uint64_t start_ns = p.start_ns, end_ns = t.pieces[i + 1].start_ns;
		bool whole = p.mix == kNoMix && p.span != kNoSpan;
		if (!HasIdle(t, p))
			continue;
		// A window may come in several pieces with spans between: where in it the thread was idle is
		// not known.
		bool told = false;
		for (size_t k = i; p.mix != kNoMix && k-- > 0 && !told;) {
			told = t.pieces[k].mix == p.mix;
			if (t.pieces[k].span == kNoSpan)
				break;
		}
		if (told)
			continue;
		for (size_t k = i + 1; p.mix != kNoMix && k + 1 < t.pieces.size(); k++) {
			if (t.pieces[k].mix == p.mix)
				end_ns = t.pieces[k + 1].start_ns;
			else if (t.pieces[k].span == kNoSpan)
				break;
		}
		idle.begins.push_back({start_ns, whole ? start_ns : end_ns});
		idle.ends.push_back({end_ns, whole ? end_ns : start_ns});
	}
	// An idle span inside a window is told sooner and later than the window's: the least and the most
	// count.
	std::stable_sort(
	    idle.ends.begin(), idle.ends.end(),
	    [](const IdleTimes::Mark &a, const IdleTimes::Mark &b) { return a.at_ns < b.at_ns; });
	for (size_t i = idle.begins.size(); i-- > 1;)
		idle.begins[i - 1].known_ns = std::min(idle.begins[i - 1].known_ns, idle.begins[i].known_ns);
	for (size_t i = 1; i < idle.ends.size(); i++)
		idle.ends[i].known_ns = std::max(idle.ends[i].known_ns, idle.ends[i - 1].known_ns);
	return idle;
}

Route BuildRoute(const Timeline &front, const Timeline &back, uint64_t start_ns, uint64_t end_ns,
		 uint64_t max_sums)
{
	Route r;
	r.front = &front;
	r.back = &back;
	r.front_idle = IdleTimesOf(front);
	r.start_ns = start_ns;
	r.shift = kMinShift;
	while ((end_ns - start_ns) >> r.shift >= max_sums)
		r.shift++;
	uint64_t step_ns = uint64_t{1} << r.shift;
	for (First first : {First::Front, First::Back}) {
		RouteTimes sum;
		std::vector<RouteTimes> &sums = r.sums[static_cast<int>(first)];
		for (uint64_t at = start_ns; at <= end_ns; at += step_ns) {
			sums.push_back(sum);
			AddWalking(r, first, at, at + step_ns, &sum);
		}
	}
	return r;
}

void AddRouteTimes(const Route &route, First first, uint64_t from_ns, uint64_t to_ns, RouteTimes *times)
{
	const std::vector<RouteTimes> &sums = route.sums[static_cast<int>(first)];
	if (from_ns >= to_ns)
		return;
	uint64_t step_ns = uint64_t{1} << route.shift;
	uint64_t low = from_ns < route.start_ns ? 0 : (from_ns - route.start_ns + step_ns - 1) >> route.shift;
	uint64_t high = to_ns < route.start_ns
			    ? 0
			    : std::min<uint64_t>((to_ns - route.start_ns) >> route.shift, sums.size() - 1);
	if (sums.empty() || low >= high) {
		AddWalking(route, first, from_ns, to_ns, times);
		return;
	}
	AddWalking(route, first, from_ns, route.start_ns + (low << route.shift), times);
	for (int c = 0; c < kTimelineCauses; c++) {
		times->front[c] += sums[high].front[c] - sums[low].front[c];
		times->back[c] += sums[high].back[c] - sums[low].back[c];
	}
	times->between_ns += sums[high].between_ns - sums[low].between_ns;
	AddWalking(route, first, route.start_ns + (high << route.shift), to_ns, times);
}

void AddRequestTimes(const Route &route, uint64_t sent_ns, uint64_t answered_ns, uint64_t from_ns,
		     uint64_t to_ns, RouteTimes *times)
{
	uint64_t passed_ns = route.front_idle.FirstAfter(sent_ns),
		 returned_ns = route.front_idle.LastBefore(answered_ns);
	if (passed_ns >= returned_ns) {
		AddRouteTimes(route, First::Front, from_ns, to_ns, times);
		return;
	}
	auto within = [&](uint64_t t_ns) { return std::clamp(t_ns, from_ns, to_ns); };
	AddRouteTimes(route, First::Front, from_ns, within(passed_ns), times);
	AddRouteTimes(route, First::Back, within(passed_ns), within(returned_ns), times);
	AddRouteTimes(route, First::Front, within(returned_ns), to_ns, times);
}

} // namespace forktail

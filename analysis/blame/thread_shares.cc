// SPDX-License-Identifier: MIT
// The part of a cause's time in which the thread waited for another one belongs to that one. Sums give the
// amount of a cause, intervals its owner; the total does not change.
#include "thread_shares.h"

#include <algorithm>

#include "analysis/timeline/apportion.h"

namespace forktail::analysis
{

namespace
{

AtHop &RowOf(uint16_t hop, std::vector<AtHop> *rows)
{
	for (AtHop &row : *rows)
		if (row.hop == hop)
			return row;
	rows->push_back({hop});
	return rows->back();
}

void MoveQueued(const Context &context, const Timeline &t, uint64_t since_ns, uint64_t due_ns, AtHop *at,
		std::vector<AtHop> *others)
{
	CauseTimes before = {};
	AddTimes(t, since_ns, due_ns, &before);
	const std::array<uint64_t, kStallCauses> all = at->queued;
	EachForeign(t, since_ns, due_ns, [&](const Foreign &f, uint64_t ns) {
		size_t c = static_cast<size_t>(Index(f.cause));
		uint16_t hop = context.HopOfThread(f.thread);
		if (hop == kNoHop || !IsStall(f.cause) || ns > before[c])
			return;
		uint64_t weights[2] = {ns, before[c] - ns}, shares[2];
		Apportion(all[c], weights, 2, shares);
		uint64_t moved = std::min(shares[0], at->queued[c]);
		at->queued[c] -= moved;
		RowOf(hop, others).queued[c] += moved;
	});
}

} // namespace

void AddPartsAt(const Context &context, const Timeline &t, AtHop at, uint64_t since_ns, uint64_t due_ns,
		uint64_t end_ns, Sheet *sheet)
{
	if (!t.foreign.empty()) {
		std::vector<AtHop> others;
		EachForeign(t, due_ns, end_ns, [&](const Foreign &f, uint64_t ns) {
			size_t c = static_cast<size_t>(Index(f.cause));
			uint16_t hop = context.HopOfThread(f.thread);
			uint64_t moved = hop == kNoHop ? 0 : std::min(ns, at.direct[c]);
			if (!moved)
				return;
			at.direct[c] -= moved;
			RowOf(hop, &others).direct[c] += moved;
		});
		if (since_ns < due_ns)
			MoveQueued(context, t, since_ns, due_ns, &at, &others);
		for (const AtHop &other : others)
			AddParts(other.direct, other.queued, other.hop, sheet);
	}
	AddParts(at.direct, at.queued, at.hop, sheet);
}

} // namespace forktail::analysis

// SPDX-License-Identifier: MIT
// The rules by which a request's time is divided, once for all sums that are made of it; docs/how-it-works/attribution.md
// has the reasons.
//
// There are three sums: exact ones by cause, for the requests that matter (blame.cc); doubles of a few kinds,
// for all of them (first_look.cc); and exact ones by hop and cause, for what went through a proxy
// (through.cc). Where time is looked up and where it is kept is theirs, what counts as what is said here.
#pragma once

#include <algorithm>
#include <concepts>

#include "context.h"

namespace forktail::analysis
{

template <typename S>
concept RequestSums = requires(S sums, uint64_t ns, typename S::Number number)
{
	// What the rules give to the network and to the load generator.
	requires std::same_as<decltype(sums.network), typename S::Number>;
	requires std::same_as<decltype(sums.late), typename S::Number>;
	// Add what [from, to) was spent on, before the request was sent and from there to where its answer
	// arrived.
	// Servers' idleness is not added to anything, but returned.
	requires std::same_as<decltype(sums.AddWaiting(ns, ns)), typename S::Number>;
	requires std::same_as<decltype(sums.AddServed(ns, ns)), typename S::Number>;
	// Servers' own code, as added.
	requires std::same_as<decltype(sums.Busy()), typename S::Number>;
	// Servers' stalls since there last was no backlog before the request was due.
	requires std::same_as<decltype(sums.StalledBefore(ns)), typename S::Number>;
	// So much was for those stalls, and of it so much was taken for servers' own code.
	sums.MoveToQueued(number, number);
	// Does the time of outages go to no-server? Then there are also Unknown(), what is not known of the
	// time that was added, and SetNoServer(without, unknown): so much for no-server, and so much left
	// unknown.
	requires std::same_as<decltype(S::kOutages), const bool>;
};

// Adds request i to *sums, which is empty.
template <RequestSums Sums> void Divide(const Context &context, size_t i, Sums *sums)
{
	using Number = typename Sums::Number;
	const Requests &q = context.run.requests;
	uint64_t due = q.due_ns[i], until = context.Until(i), sent = q.sent_ns[i];
	uint64_t arrived = q.Arrived(i), unread = q.Unread(i);

	// A server that is idle waits for the load generator where that was stalled, or had a free
	// connection; for the network else. Once the answer has arrived it's the load generator's time,
	// whatever the server does.
	Number idle_waiting = sums->AddWaiting(due, until), idle = sums->AddServed(sent, arrived);
	Number late_waiting = idle_waiting, late = idle;
	if (idle_waiting > 0)
		late_waiting = std::min(static_cast<Number>(context.LateWaiting(i)), idle_waiting);
	if (idle > 0)
		late = std::min(static_cast<Number>(context.ClientStalled(i, sent, arrived)), idle);
	idle_waiting -= late_waiting;
	sums->late += static_cast<Number>(sent - until) + late_waiting + late + static_cast<Number>(unread);
	sums->network += idle_waiting + idle - late;

	// The server that the log names is the one that answered in the end: that it was idle meanwhile says
	// nothing.
	if constexpr (Sums::kOutages) {
		if (uint64_t without = context.WithoutServer(i)) {
			Number left = static_cast<Number>(without), unknown = sums->Unknown();
			for (Number *part : {&unknown, &sums->late, &sums->network}) {
				Number moved = std::clamp(*part, Number{0}, left);
				*part -= moved;
				left -= moved;
			}
			sums->SetNoServer(static_cast<Number>(without) - left, unknown);
			idle_waiting = 0;
		}
	}

	// Of the backlog is what a server worked for others beyond what is usual, and the time it sat idle
	// while the request waited for a connection that a late answer held.
	Number busy = sums->Busy(), usual = static_cast<Number>(context.usual_ns[q.op[i]]);
	Number from_busy = busy > usual ? busy - usual : 0, excess = idle_waiting + from_busy;
	if (!(excess > 0))
		return;
	Number moved = std::min(excess, sums->StalledBefore(due));
	if (!(moved > 0))
		return;
	from_busy = std::min(moved, from_busy);
	sums->network -= moved - from_busy;
	sums->MoveToQueued(moved, from_busy);
}

} // namespace forktail::analysis

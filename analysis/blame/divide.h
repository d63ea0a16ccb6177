// SPDX-License-Identifier: MIT
// The rules that divide a request's time, written once for all kinds of sums.
// docs/how-it-works/attribution.md has the reasons.
//
// There are three kinds: exact sums by cause, for requests that matter (direct.cc); doubles of a few kinds,
// for all requests (first_look.cc); and exact sums by hop and cause, for requests through a proxy (proxy.cc).
// They define where time is looked up and stored. The rules here define what counts as what.
#pragma once

#include <algorithm>
#include <concepts>
#include <numeric>

#include "context.h"

namespace forktail::analysis
{

// Between the last instant without a backlog and a request's due time.
template <typename Number> struct BeforeDue {
	Number stalled, busy;
	double work_ns; // own code for the requests that fell due then
};

// The iteration in which a request became due. It takes requests only at its begin.
template <typename Number> struct InIteration {
	Number busy;	       // its own code in the request's time
	Number stalled_before; // the part of BeforeDue::stalled before it
};

template <typename S>
concept RequestSums = requires(S sums, uint64_t ns, typename S::Number number)
{
	// Time that the rules give to the network and to the load generator.
	requires std::same_as<decltype(sums.network), typename S::Number>;
	requires std::same_as<decltype(sums.late), typename S::Number>;
	// Add the time of [from, to): before the request was sent, and from sent to the arrival of its
	// answer. Servers' idle time is not added but returned.
	requires std::same_as<decltype(sums.AddWaiting(ns, ns)), typename S::Number>;
	requires std::same_as<decltype(sums.AddServed(ns, ns)), typename S::Number>;
	// Time in servers' own code, as added.
	requires std::same_as<decltype(sums.Busy()), typename S::Number>;
	// What servers did between the last instant without a backlog and the request's due time.
	requires std::same_as<decltype(sums.Before(size_t{})), BeforeDue<typename S::Number>>;
	// Of what Before returned: about the event-loop iteration in which the request became due.
	requires std::same_as<decltype(sums.AtDue(size_t{})), InIteration<typename S::Number>>;
	// Moves the first amount to queued time for those stalls; the second is the part that was counted as
	// servers' own code.
	sums.MoveToQueued(number, number);
	// Adds unattributed time, and time in which the server held the request.
	sums.AddUnknown(number);
	sums.AddHeld(number);
	// Does the time of outages go to no-server? Then there are also Unknown(), the unknown part of the
	// time added so far, and SetNoServer(without, unknown), which sets the time of no-server and the rest
	// that stays unknown.
	requires std::same_as<decltype(S::kOutages), const bool>;
};

// The sum of all stalls.
inline uint64_t StallsOf(const CauseTimes &times)
{
	return std::accumulate(times.begin(), times.begin() + kStallCauses, uint64_t{0});
}

// Calls add(from_ns, to_ns) for the parts of request i's time before end_ns in which it waited for servers.
template <typename Add> void ForServersTime(const Context &context, size_t i, uint64_t end_ns, Add add)
{
	const Requests &q = context.run.requests;
	if (!context.in_kernel)
		add(q.due_ns[i], std::min(context.Until(i), end_ns));
	add(q.sent_ns[i], std::min(q.Arrived(i), end_ns));
}

// InIteration at one thread, with exact times.
inline InIteration<uint64_t> InIterationAt(const Context &context, const Timeline &timeline, size_t i,
					   uint64_t clear_ns)
{
	const uint64_t due_ns = context.run.requests.due_ns[i];
	const TimeSpan iteration = ClosedIteration(context.run, timeline, due_ns);
	CauseTimes in = {}, before = {};
	ForServersTime(context, i, iteration.until_ns,
		       [&](uint64_t from_ns, uint64_t to_ns) { AddTimes(timeline, from_ns, to_ns, &in); });
	AddTimes(timeline, clear_ns, iteration.since_ns, &before);
	return {in[Index(Cause::ServerBusy)], StallsOf(before)};
}

// How much of `excess`, own code in request i's time, works off what stalls left behind.
//
// That is work for requests which fell due before, not more than that. Own code of the iteration in which the
// request became due would have run without the stalls inside that iteration, so only earlier ones count
// for it. Not only stalls delay requests: a slow command does it with its own code too. `slow`: own code
// beyond the work of the requests. The backlog is left by both, in proportion to their lengths.
template <RequestSums Sums>
double LeftByStalls(const BeforeDue<typename Sums::Number> &before, size_t i, double excess, Sums *sums)
{
	const InIteration<typename Sums::Number> at = sums->AtDue(i);
	const double stalled = static_cast<double>(before.stalled);
	const double iteration = std::min(static_cast<double>(at.busy), excess), rest = excess - iteration;
	const double earlier =
	    std::min(iteration, before.work_ns * static_cast<double>(at.stalled_before) / stalled);
	const double slow = std::max(0.0, static_cast<double>(before.busy) + earlier + rest - before.work_ns);
	return std::min(earlier + rest, before.work_ns) * stalled / (stalled + slow);
}

// Moves time of request i to queued time. `idle_waiting`: how long servers were idle before it was sent.
template <RequestSums Sums>
void DivideBacklog(const Context &context, size_t i, typename Sums::Number idle_waiting, Sums *sums)
{
	using Number = typename Sums::Number;
	const Requests &q = context.run.requests;
	// Backlog is the server's work for others beyond the usual latency, and its idle time while the
	// request waited for a connection that a late answer blocked.
	Number busy = sums->Busy(), usual = static_cast<Number>(context.usual_ns[q.op[i]]);
	Number from_busy = busy > usual ? busy - usual : 0;
	if (!(idle_waiting + from_busy > 0))
		return;
	const BeforeDue<Number> before = sums->Before(i);
	if (!(before.stalled > 0))
		return;
	from_busy = static_cast<Number>(LeftByStalls(before, i, static_cast<double>(from_busy), sums));
	Number moved = std::min(idle_waiting + from_busy, before.stalled);
	from_busy = std::min(moved, from_busy);
	sums->network -= moved - from_busy;
	sums->MoveToQueued(moved, from_busy);
}

// Adds the time of request i from sent to the arrival of its answer. An idle server waits for the load
// generator if that was stalled, else for the network; if it is a client of other servers, and the request's
// is not known, it may wait for that. If it is known when the server's kernel had the request, then not in
// that time: the server waits for the one behind it, which counts as network if it was not recorded, or for
// something that is not known. A server that answers by itself, and had read it, held it.
template <RequestSums Sums> void DivideServed(const Context &context, size_t i, Sums *sums)
{
	using Number = typename Sums::Number;
	const Requests &q = context.run.requests;
	auto outside = [&](uint64_t from_ns, uint64_t to_ns) {
		const Number idle = sums->AddServed(from_ns, to_ns);
		Number late = 0;
		if (idle > 0)
			late = std::min(static_cast<Number>(context.ClientStalled(i, from_ns, to_ns)), idle);
		sums->late += late;
		if (context.ServerOf(i).awaits && !q.Behind(i))
			return sums->AddUnknown(idle - late);
		const Number held =
		    context.Blocks(i)
			? idle - late
			: std::min(static_cast<Number>(context.Held(i, from_ns, to_ns)), idle - late);
		if (held > 0)
			sums->AddHeld(held);
		sums->network += idle - late - held;
	};
	const uint64_t sent = q.sent_ns[i], arrived = q.Arrived(i);
	if (!q.Joined(i))
		return outside(sent, arrived);
	const uint64_t at_server = std::min(q.server_arrival_ns[i], arrived),
		       answered = std::min(q.answered_ns[i], arrived);
	outside(sent, at_server);
	const uint64_t read = context.ReadAt(i, at_server, answered);
	const Number network = sums->network, idle = sums->AddServed(at_server, read),
		     idle_after = read < answered ? sums->AddServed(read, answered) : Number{0};
	if (q.Behind(i)) {
		sums->network += idle + idle_after;
	} else {
		sums->AddUnknown(idle + sums->network - network);
		sums->AddHeld(idle_after);
		sums->network = network;
	}
	outside(answered, arrived);
}

// Adds request i to *sums, which is empty.
template <RequestSums Sums> void Divide(const Context &context, size_t i, Sums *sums)
{
	using Number = typename Sums::Number;
	const Requests &q = context.run.requests;
	uint64_t due = q.due_ns[i], until = context.Until(i), sent = q.sent_ns[i];
	uint64_t arrived = q.Arrived(i), unread = q.Unread(i);

	// A request that was seen in the server's kernel is there from begin to end. If the serving thread is
	// idle or waits on a socket meanwhile, then for something that is not recorded: the rest of the
	// request, another thread, another server.
	if (context.in_kernel) {
		const uint64_t read = context.ReadAt(i, sent, arrived);
		sums->AddUnknown(sums->AddServed(sent, read) + sums->network);
		if (read < arrived)
			sums->AddHeld(sums->AddServed(read, arrived));
		sums->network = 0;
		return DivideBacklog(context, i, Number{0}, sums);
	}

	// Before it was sent, an idle server waits for the load generator if that was stalled or had a free
	// connection, else for the network. After the answer's arrival the time is the load generator's,
	// whatever the server does.
	Number idle_waiting = sums->AddWaiting(due, until), late_waiting = idle_waiting;
	if (idle_waiting > 0)
		late_waiting = std::min(static_cast<Number>(context.LateWaiting(i)), idle_waiting);
	idle_waiting -= late_waiting;
	if (const Number held = std::min(static_cast<Number>(context.HeldWaiting(i)), idle_waiting);
	    held > 0) {
		sums->AddHeld(held);
		idle_waiting -= held;
	}
	sums->late += late_waiting + static_cast<Number>(unread);
	// A request that was never sent had no connection: that is not the load generator's doing.
	if (q.status[i] == FT_STATUS_UNSENT)
		sums->AddUnknown(static_cast<Number>(sent - until));
	else
		sums->late += static_cast<Number>(sent - until);
	sums->network += idle_waiting;
	DivideServed(context, i, sums);

	// The log names the server that answered in the end. That it was idle during the outage means
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

	DivideBacklog(context, i, idle_waiting, sums);
}

} // namespace forktail::analysis

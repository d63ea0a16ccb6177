// SPDX-License-Identifier: MIT
// Exact blame of requests that were sent to a server directly, and when their answers arrived.
//
// The rules are in blame.h; the sums here are whole nanoseconds by cause.
#include <algorithm>
#include <array>
#include <utility>

#include "analysis/blame.h"
#include "analysis/timeline.h"

namespace forktail::analysis
{

namespace
{

// The sums of Divide (blame.h), exact and by cause.
struct ExactSums {
	using Number = uint64_t;
	static constexpr bool kOutages = true;

	const Context &context;
	const Server &server;
	CauseTimes direct = {}, before = {};
	std::array<uint64_t, kStallCauses> queued = {};
	uint64_t network = 0, late = 0;
	uint64_t since_ns = 0; // start of the stalls that it queued for; 0: it did not queue
	uint64_t clear_ns = 0;

	uint64_t AddWaiting(uint64_t from_ns, uint64_t to_ns)
	{
		AddTimes(*server.timeline, from_ns, to_ns, &direct);
		network += std::exchange(direct[Index(Cause::Network)], 0);
		return std::exchange(direct[Index(Cause::Idle)], 0);
	}
	uint64_t AddServed(uint64_t from_ns, uint64_t to_ns) { return AddWaiting(from_ns, to_ns); }
	uint64_t Busy() const { return direct[Index(Cause::ServerBusy)]; }
	uint64_t Unknown() const { return direct[Index(Cause::Unknown)]; }
	void SetNoServer(uint64_t without, uint64_t unknown)
	{
		direct[Index(Cause::NoServer)] = without;
		direct[Index(Cause::Unknown)] = unknown;
	}
	void AddUnknown(uint64_t ns) { direct[Index(Cause::Unknown)] += ns; }
	void AddHeld(uint64_t ns) { direct[Index(Cause::Held)] += ns; }
	BeforeDue<uint64_t> Before(size_t i)
	{
		const uint64_t due_ns = context.run.requests.due_ns[i];
		clear_ns = std::max(server.backlog.ClearBefore(due_ns), server.timeline->start_ns());
		if (clear_ns < due_ns)
			AddTimes(*server.timeline, clear_ns, due_ns, &before);
		return {StallsOf(before), before[Index(Cause::ServerBusy)],
			context.WorkDue(i, server.backlog, server.service_ns, clear_ns, due_ns)};
	}
	InIteration<uint64_t> AtDue(size_t i)
	{
		return InIterationAt(context, *server.timeline, i, clear_ns);
	}
	void MoveToQueued(uint64_t moved, uint64_t from_busy)
	{
		Apportion(moved, before.data(), queued.size(), queued.data());
		direct[Index(Cause::ServerBusy)] -= from_busy;
		since_ns = clear_ns;
	}
};

// Time within the uncertainty of the clocks, where a request came from another host's clock to this one or
// went back, may not belong to the request. It is blamed on no cause; returns its sum.
uint64_t RemoveClockUncertainty(const Requests &q, size_t i, uint64_t bound_ns, ExactSums *sums)
{
	const uint64_t sent = q.sent_ns[i], arrived = q.Arrived(i);
	if (!bound_ns)
		return 0;
	CauseTimes border = {};
	const uint64_t first_ends = std::min(arrived, sent + bound_ns);
	AddTimes(*sums->server.timeline, sent, first_ends, &border);
	AddTimes(*sums->server.timeline, std::max(first_ends, arrived - std::min(arrived, bound_ns)), arrived,
		 &border);
	border[Index(Cause::Network)] += std::exchange(border[Index(Cause::Idle)], 0);
	uint64_t left_ns = 0;
	for (size_t c = 0; c < kCauses; c++) {
		uint64_t &part = sums->direct[c];
		if (c == Index(Cause::Unknown) || c == Index(Cause::ClientLate) || !part || part > border[c])
			continue;
		left_ns += std::exchange(part, 0);
	}
	sums->direct[Index(Cause::Unknown)] += left_ns;
	return left_ns;
}

} // namespace

void BlameDirectly(const Context &context, size_t i, Sheet *sheet)
{
	const Requests &q = context.run.requests;
	const Server &server = context.ServerOf(i);
	uint64_t due = q.due_ns[i];
	ExactSums sums = {context, server};
	Divide(context, i, &sums);
	sums.direct[Index(Cause::Network)] += sums.network;
	const uint64_t bound_ns = ClocksBound(context.run, q.connection[i], server.timeline->thread);
	const uint64_t clocks_ns = RemoveClockUncertainty(q, i, bound_ns, &sums);
	sums.direct[Index(Cause::ClientLate)] += sums.late;
	SlowRequest r = {due,
			 q.end_ns[i] - due,
			 sums.since_ns ? sums.since_ns : due,
			 q.Number(i),
			 0,
			 static_cast<uint32_t>(sheet->parts.size()),
			 0,
			 q.op[i],
			 q.status[i],
			 server.hop};
	NoteRequest(q, i, &r);
	r.clocks_ns = clocks_ns;
	SplitNetwork(context, *server.timeline, i, bound_ns, &r);
	if (!r.joined && (r.arrived || bound_ns))
		r.way = FindOnTheWay(*server.timeline, q.sent_ns[i], q.Arrived(i), bound_ns);
	if (context.in_kernel)
		r.idle = FindServerIdle(*server.timeline, q, i);
	AddPartsAt(context, *server.timeline, {server.hop, sums.direct, sums.queued}, r.since_ns, due,
		   q.Arrived(i), sheet);
	AddRequest(&r, sheet);
}

// A server that was idle throughout did answer: its iteration was too short for a span, or was not recorded.
// Then nothing distinguishes the two directions, and both stay 0.

namespace
{

// How long a serving thread was idle or waited on a socket.
uint64_t IdleBetween(const Timeline &server, uint64_t from_ns, uint64_t to_ns)
{
	CauseTimes times = {};
	AddTimes(server, from_ns, to_ns, &times);
	return times[Index(Cause::Idle)] + times[Index(Cause::Network)];
}

} // namespace

ServerIdle FindServerIdle(const Timeline &server, const Requests &q, size_t i)
{
	if (q.read_ns.empty() || !q.read_ns[i])
		return {};
	const uint64_t from_ns = q.Joined(i) ? q.server_arrival_ns[i] : q.sent_ns[i],
		       to_ns = q.Joined(i) ? q.answered_ns[i] : q.end_ns[i];
	return {IdleBetween(server, from_ns, q.read_ns[i]), IdleBetween(server, q.read_ns[i], to_ns)};
}

void SplitNetwork(const Context &context, const Timeline &server, size_t i, uint64_t bound_ns, SlowRequest *r)
{
	const Requests &q = context.run.requests;
	r->joined = q.Joined(i);
	if (!r->joined)
		return;
	auto on_way = [&](uint64_t from_ns, uint64_t to_ns) {
		const uint64_t ns = IdleBetween(server, from_ns, to_ns);
		return ns - std::min(ns, context.ClientStalled(i, from_ns, to_ns) + bound_ns);
	};
	const uint64_t arrived = q.Arrived(i);
	r->way = {on_way(q.sent_ns[i], std::min(q.server_arrival_ns[i], arrived)),
		  on_way(std::min(q.answered_ns[i], arrived), arrived)};
	r->idle = FindServerIdle(server, q, i);
}

void NoteRequest(const Requests &requests, size_t i, SlowRequest *r)
{
	r->sent_ns = requests.sent_ns[i];
	r->connection = requests.connection[i];
	r->behind = static_cast<uint8_t>(requests.Behind(i));
	r->arrived = !requests.arrival_ns.empty() && requests.arrival_ns[i];
	r->unread_ns = requests.Unread(i);
	if (requests.written_ns.empty()) // no kernel log, or a joined one
		return;
	r->request_bytes = requests.request_bytes[i];
	r->answer_bytes = requests.answer_bytes[i];
	r->read_ns = requests.read_ns[i];
	r->written_ns = requests.written_ns[i];
}

OnTheWay FindOnTheWay(const Timeline &server, uint64_t sent_ns, uint64_t arrived_ns, uint64_t bound_ns)
{
	OnTheWay way;
	if (server.empty() || sent_ns < server.start_ns() || arrived_ns > server.end_ns() ||
	    sent_ns >= arrived_ns)
		return way;
	auto idle = [](const Piece &p) { return p.cause == Cause::Idle && p.span != kNoSpan; };
	uint32_t first = PieceAt(server, sent_ns), last = PieceAt(server, arrived_ns - 1);
	if (first == last)
		return way;
	if (idle(server.pieces[first]))
		way.request_ns = server.pieces[first + 1].start_ns - sent_ns;
	if (idle(server.pieces[last]))
		way.answer_ns = arrived_ns - server.pieces[last].start_ns;
	for (uint64_t *ns : {&way.request_ns, &way.answer_ns})
		*ns -= std::min(*ns, bound_ns);
	return way;
}

// The part of a cause's time in which the thread waited for another one belongs to that one. Sums give the
// amount of a cause, intervals its owner; the total does not change.

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

// Parts without time are dropped, and at a hop only causes inside a process are stored.

namespace
{

bool IsAtHop(Cause cause)
{
	return cause != Cause::ClientLate && cause != Cause::Network && cause != Cause::NoServer;
}

} // namespace

void AddPart(Cause cause, uint16_t hop, uint64_t direct_ns, uint64_t queued_ns, Sheet *sheet)
{
	if (direct_ns || queued_ns)
		sheet->parts.push_back({cause, IsAtHop(cause) ? hop : kNoHop, direct_ns, queued_ns});
}

void AddParts(const CauseTimes &direct, const std::array<uint64_t, kStallCauses> &queued, uint16_t hop,
	      Sheet *sheet)
{
	for (size_t c = 0; c < kCauses; c++) {
		Cause cause = static_cast<Cause>(c);
		AddPart(cause, hop, direct[c], IsStall(cause) ? queued[c] : 0, sheet);
	}
}

void AddRequest(SlowRequest *r, Sheet *sheet)
{
	r->part_count = static_cast<uint16_t>(sheet->parts.size() - r->first_part);
	std::sort(sheet->parts.begin() + r->first_part, sheet->parts.end(),
		  [](const Part &a, const Part &b) { return a.total_ns() > b.total_ns(); });
	sheet->requests.push_back(*r);
}

} // namespace forktail::analysis

// SPDX-License-Identifier: MIT
// A server that was idle throughout did answer: its iteration was too short for a span, or was not recorded.
// Then nothing distinguishes the two directions, and both stay 0.
#include "arrivals.h"

#include <algorithm>

namespace forktail::analysis
{

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

} // namespace forktail::analysis

// SPDX-License-Identifier: MIT
// A server that was idle throughout did answer: its iteration was too short for a span, or was not recorded.
// Then nothing distinguishes the two directions, and both stay 0.
#include "arrivals.h"

#include <algorithm>

namespace forktail::analysis
{

ServerIdle FindServerIdle(const Timeline &server, const Requests &q, size_t i)
{
	if (q.read_ns.empty() || !q.read_ns[i])
		return {};
	auto idle = [&](uint64_t from_ns, uint64_t to_ns) {
		CauseTimes times = {};
		AddTimes(server, from_ns, to_ns, &times);
		return times[Index(Cause::Idle)] + times[Index(Cause::Network)];
	};
	return {idle(q.sent_ns[i], q.read_ns[i]), idle(q.read_ns[i], q.end_ns[i])};
}

void NoteRequest(const Requests &requests, size_t i, SlowRequest *r)
{
	r->sent_ns = requests.sent_ns[i];
	r->connection = requests.connection[i];
	r->behind = static_cast<uint8_t>(requests.Behind(i));
	r->arrived = !requests.arrival_ns.empty() && requests.arrival_ns[i];
	r->unread_ns = requests.Unread(i);
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

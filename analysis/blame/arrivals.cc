// SPDX-License-Identifier: MIT
// A server that was idle throughout answered all the same: its turn was too short for a span, or nobody saw
// it. Then nothing tells the two ways apart, and nothing is said.
#include "arrivals.h"

#include <algorithm>

#include "percentile.h"

namespace forktail
{

Arrivals FindArrivals(const Run &run)
{
	const Requests &q = run.requests;
	Arrivals all;
	if (q.arrival_ns.empty())
		return all;
	Column<uint64_t> values;
	values.Extend(q.size());
	for (size_t i = 0; i < q.size(); i++) {
		if (q.arrival_ns[i] == 0 || IsError(q.status[i]))
			continue;
		values[all.known++] = q.arrival_ns[i] - q.intended_ns[i];
		all.unread_ns += q.Unread(i);
		all.longest_unread_ns = std::max(all.longest_unread_ns, q.Unread(i));
	}
	all.latencies = LatenciesOf(values.data(), all.known);
	return all;
}

void NoteArrival(const Requests &requests, SlowRequest *r)
{
	r->arrived = !requests.arrival_ns.empty() && requests.arrival_ns[r->index];
	r->unread_ns = requests.Unread(r->index);
}

OnTheWay FindOnTheWay(const Timeline &server, uint64_t sent_ns, uint64_t arrived_ns)
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
	return way;
}

} // namespace forktail

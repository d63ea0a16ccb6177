// SPDX-License-Identifier: MIT
// A request's own path: its route's sums, or its server's timeline if no route is known.
#include "hop_shares.h"

namespace forktail::analysis
{

RequestPath PathOfRequest(const Context &context, size_t i)
{
	const Requests &q = context.run.requests;
	const ProxyPath *t = context.ProxyPathOf(i);
	return {context, i, t, t ? CutsOf(t->route, q.sent_ns[i], q.Arrived(i)) : Cuts{}};
}

uint64_t AddOwn(const RequestPath &path, uint64_t from_ns, uint64_t to_ns, HopTimes *s)
{
	if (from_ns >= to_ns)
		return 0;
	if (const ProxyPath *t = path.proxy) {
		s->At(t->front_hop);
		s->At(t->back_hop); // adds no further hop from here
		return AddRequestTimes(t->route, path.cuts, from_ns, to_ns, &s->At(t->front_hop).direct,
				       &s->At(t->back_hop).direct);
	}
	const Server &server = path.context.ServerOf(path.request);
	CauseTimes times = {};
	AddTimes(*server.timeline, from_ns, to_ns, &times);
	uint64_t idle_ns = times[Index(Cause::Idle)] + times[Index(Cause::Network)];
	times[Index(Cause::Idle)] = times[Index(Cause::Network)] = 0;
	s->Add(times, server.hop);
	return idle_ns;
}

} // namespace forktail::analysis

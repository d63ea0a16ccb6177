// SPDX-License-Identifier: MIT
// Rows of requests, of slow requests, and of their parts.
#include "filler.h"

namespace forktail::analysis::exports
{

bool Filler::AddSlow(const Run &run, const SlowRequest &r, const Part *parts)
{
	const bool logged = !run.ops.empty();
	Row(kSlow)
	    .Int(r.index)
	    .Int(r.due_ns)
	    .Time(At(r.due_ns))
	    .IntOr(logged, r.sent_ns)
	    .Int(r.end_ns())
	    .Int(r.latency_ns)
	    .Int(r.since_ns)
	    .IntOr(r.arrived, r.unread_ns)
	    .IntOr(logged, r.connection)
	    .Name(r.op)
	    .Name(logged ? r.status : SIZE_MAX)
	    .IntOr(r.hop != kNoHop, r.hop)
	    .Int(r.part_count);
	for (size_t p = 0; p < r.part_count; p++)
		Row(kParts)
		    .Int(r.index)
		    .Int(r.due_ns)
		    .Time(At(r.due_ns))
		    .Int(r.latency_ns)
		    .IntOr(logged, r.connection)
		    .Name(r.op)
		    .Name(static_cast<size_t>(Index(parts[p].cause)))
		    .IntOr(parts[p].hop != kNoHop, parts[p].hop)
		    .Int(parts[p].direct_ns)
		    .Int(parts[p].queued_ns)
		    .Int(parts[p].total_ns());
	return ok_;
}

bool Filler::AddWindow(const Explanation &e)
{
	const Requests &q = e.run.requests;
	for (size_t i = q.lead; i < q.size() && ok_; i++) {
		const bool arrived = !q.arrival_ns.empty() && q.arrival_ns[i];
		Row(kRequests)
		    .Int(q.Number(i))
		    .Int(q.due_ns[i])
		    .Time(At(q.due_ns[i]))
		    .Int(q.sent_ns[i])
		    .Int(q.end_ns[i])
		    .IntOr(arrived, arrived ? q.arrival_ns[i] : 0)
		    .Int(q.Latency(i))
		    .Int(q.connection[i])
		    .Name(q.op[i])
		    .Name(q.status[i])
		    .Name(size_t{q.Behind(i)} - 1)
		    .Bool(q.Latency(i) >= e.blame.threshold_ns);
	}
	return ok_;
}

} // namespace forktail::analysis::exports

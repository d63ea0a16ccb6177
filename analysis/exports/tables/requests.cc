// SPDX-License-Identifier: MIT
// Rows of requests, of slow requests, and of their parts.
#include "filler.h"

namespace forktail::analysis::exports
{

namespace
{

// A value of 0 is unknown, as is each one of an empty column.
template <class T> void AddKnown(const Column<T> &column, size_t i, Batch *row)
{
	const T value = column.empty() ? 0 : column[i];
	row->IntOr(value != 0, value);
}

} // namespace

bool Filler::AddSlow(const Run &run, const SlowRequest &r, const Part *parts)
{
	const bool logged = !run.ops.empty();
	const NetworkSplit split = r.Split();
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
	    .Int(r.part_count)
	    .IntOr(r.joined, split.to_server_ns)
	    .IntOr(r.joined, split.unread_at_server_ns)
	    .IntOr(r.joined, split.to_client_ns);
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
		Batch &row = Row(kRequests);
		row.Int(q.Number(i))
		    .Int(q.due_ns[i])
		    .Time(At(q.due_ns[i]))
		    .Int(q.sent_ns[i])
		    .Int(q.end_ns[i]);
		AddKnown(q.arrival_ns, i, &row);
		row.Int(q.Latency(i))
		    .Int(q.connection[i])
		    .Name(q.op[i])
		    .Name(q.status[i])
		    .Name(size_t{q.Behind(i)} - 1)
		    .Bool(q.Latency(i) >= e.blame.threshold_ns);
		for (const auto *time : {&q.server_arrival_ns, &q.read_ns, &q.answered_ns, &q.written_ns})
			AddKnown(*time, i, &row);
		AddKnown(q.request_bytes, i, &row);
		AddKnown(q.answer_bytes, i, &row);
	}
	return ok_;
}

} // namespace forktail::analysis::exports

// SPDX-License-Identifier: MIT
// The rules are in divide.h; the sums here are whole nanoseconds by cause.
#include "direct.h"

#include <algorithm>
#include <array>
#include <utility>

#include "analysis/timeline/apportion.h"
#include "arrivals.h"
#include "divide.h"
#include "legs.h"
#include "thread_shares.h"

namespace forktail::analysis
{

namespace
{

// The sums of Divide (divide.h), exact and by cause.
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

} // namespace forktail::analysis

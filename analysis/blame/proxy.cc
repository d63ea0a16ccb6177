// SPDX-License-Identifier: MIT
// Blames requests that went through a proxy to a server behind it. The proxy answers in order. So where a
// request's own path (route.h) is idle, it may wait for one ahead of it on its connection: then that
// request's path has the cause. docs/how-it-works/attribution.md has the rules.
#include "proxy.h"

#include <algorithm>
#include <numeric>

#include "analysis/timeline/apportion.h"
#include "arrivals.h"
#include "divide.h"
#include "hop_rows.h"

namespace forktail::analysis
{

namespace
{

// The maximum number of requests ahead of one, in flight on its connection, that are examined.
constexpr size_t kInFront = 256;
// The number of sums of all paths together, each about a kilobyte.
constexpr uint64_t kSums = 32'768;

// Adds `ns` in the proportions of `all`, of which idle_ns is the idle time. Returns the idle share.
uint64_t AddScaled(const HopTimes &all, uint64_t idle_ns, uint64_t ns, HopTimes *s)
{
	std::array<uint64_t, kApportionMax> weight = {idle_ns}, share;
	size_t hops = all.hops.size();
	if (hops >= weight.size())
		return ns;
	for (size_t h = 0; h < hops; h++)
		for (uint64_t part : all.hops[h].direct)
			weight[h + 1] += part;
	Apportion(ns, weight.data(), hops + 1, share.data());
	for (size_t h = 0; h < hops; h++) {
		CauseTimes parts = {};
		Apportion(share[h + 1], all.hops[h].direct.data(), parts.size(), parts.data());
		s->Add(parts, all.hops[h].hop);
	}
	return share[0];
}

// AddOwn with head-of-line blocking: a proxy answers in order. Where its own path is idle, a request may wait
// for those ahead of it that went to another server; at each instant for the oldest one without an answer.
uint64_t AddServed(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, HopTimes *own,
		   HopTimes *s)
{
	const Requests &q = context.run.requests;
	uint32_t front = context.in_front[i];
	const RequestPath path = PathOfRequest(context, i);
	if (front == kNoRequest || q.end_ns[front] <= from_ns)
		return AddOwn(path, from_ns, to_ns, s);
	own->hops.clear();
	uint64_t idle_ns = AddOwn(path, from_ns, to_ns, own);
	// A request that takes no longer than usual waits for no other.
	if (idle_ns <= context.usual_ns[q.op[i]]) {
		for (const AtHop &h : own->hops)
			s->Add(h.direct, h.hop);
		return idle_ns;
	}
	std::array<uint32_t, kInFront> waiting;
	size_t count = 0;
	for (; front != kNoRequest && q.end_ns[front] > from_ns && count < waiting.size();
	     front = context.in_front[front])
		waiting[count++] = front;
	idle_ns = 0;
	while (count--) {
		uint32_t oldest = waiting[count];
		uint64_t until = std::min(to_ns, q.end_ns[oldest]);
		if (until <= from_ns)
			continue;
		uint64_t idle_here = AddOwn(path, from_ns, until, s);
		own->hops.clear();
		uint64_t idle_there = AddOwn(PathOfRequest(context, oldest), from_ns, until, own);
		idle_ns += AddScaled(*own, idle_there, idle_here, s);
		from_ns = until;
	}
	return idle_ns + AddOwn(path, from_ns, to_ns, s);
}

// The sums of Divide (divide.h) by hop. Outages are not considered, because the proxy answers in them, though
// late.
struct HopSums {
	using Number = uint64_t;
	static constexpr bool kOutages = false;
	static constexpr size_t kStalls = kStallCauses;
	using Stalls = std::array<uint64_t, 2 * kStalls>; // the proxy's, then those of the server behind it
	static_assert(2 * kStalls <= kApportionMax);

	const Context &context;
	const ProxyPath &path;
	size_t i;
	HeadOfLine *head_of_line;
	HopTimes *own, *times;
	uint64_t network = 0, late = 0;
	uint64_t since_ns = 0;
	Stalls before = {};

	uint64_t AddWaiting(uint64_t from_ns, uint64_t to_ns)
	{
		return head_of_line->Add(context, i, from_ns, to_ns, times);
	}
	uint64_t AddServed(uint64_t from_ns, uint64_t to_ns)
	{
		return analysis::AddServed(context, i, from_ns, to_ns, own, times);
	}
	uint64_t Busy() const { return times->Sum(Cause::ServerBusy); }
	void AddUnknown(uint64_t ns) { times->At(path.front_hop).direct[Index(Cause::Unknown)] += ns; }
	void AddHeld(uint64_t ns) { times->At(path.front_hop).direct[Index(Cause::Held)] += ns; }
	BeforeDue<uint64_t> Before(size_t)
	{
		const Route &route = path.route;
		const uint64_t due_ns = context.run.requests.due_ns[i];
		since_ns = std::max(
		    {path.backlog.ClearBefore(due_ns), route.front->start_ns(), route.back->start_ns()});
		if (since_ns >= due_ns)
			return {};
		CauseTimes front = {}, back = {};
		AddTimes(*route.front, since_ns, due_ns, &front);
		AddTimes(*route.back, since_ns, due_ns, &back);
		std::copy_n(front.begin(), kStalls, before.begin());
		std::copy_n(back.begin(), kStalls, before.begin() + kStalls);
		return {std::accumulate(before.begin(), before.end(), uint64_t{0}),
			front[Index(Cause::ServerBusy)] + back[Index(Cause::ServerBusy)],
			context.WorkDue(i, path.backlog, context.way_service_ns[context.WayOf(i)], since_ns,
					due_ns)};
	}
	InIteration<uint64_t> AtDue(size_t)
	{
		InIteration<uint64_t> at = {};
		for (uint16_t hop : {path.front_hop, path.back_hop}) {
			const InIteration<uint64_t> one =
			    InIterationAt(context, *context.timelines[hop], i, since_ns);
			at.busy += std::min(one.busy, times->At(hop).direct[Index(Cause::ServerBusy)]);
			at.stalled_before += one.stalled_before;
		}
		return at;
	}
	void MoveToQueued(uint64_t moved, uint64_t from_busy)
	{
		Stalls share;
		Apportion(moved, before.data(), before.size(), share.data());
		// In the order of hops: the proxy's own code first, usually a burst of late answers.
		for (AtHop &h : times->hops) {
			uint64_t ns = std::min(from_busy, h.direct[Index(Cause::ServerBusy)]);
			h.direct[Index(Cause::ServerBusy)] -= ns;
			from_busy -= ns;
		}
		for (size_t c = 0; c < kStalls; c++)
			times->At(path.front_hop).queued[c] += share[c];
		for (size_t c = 0; c < kStalls; c++)
			times->At(path.back_hop).queued[c] += share[kStalls + c];
		times->since_ns = since_ns;
	}
};

} // namespace

void SumHops(const Context &context, const ProxyPath &t, size_t i, ProxyScratch *scratch)
{
	HopTimes *s = &scratch->times;
	s->hops.clear();
	s->since_ns = context.run.requests.due_ns[i];
	HopSums sums = {context, t, i, &scratch->head_of_line, &scratch->own, s};
	Divide(context, i, &sums);
	s->between_ns = sums.network;
	s->late_ns = sums.late;
}

void BlameProxyRequest(const Context &context, const ProxyPath &t, size_t i, const Matter &matter,
		       ProxyScratch *scratch, Sheet *sheet)
{
	const Requests &q = context.run.requests;
	uint64_t due = q.due_ns[i];
	SumHops(context, t, i, scratch);
	const HopTimes &times = scratch->times;
	if (q.Latency(i) < matter.threshold_ns) {
		const StallTimes stalls = times.Stalls();
		bool matters = false;
		for (size_t c = 0; c < stalls.size() && !matters; c++)
			matters = q.Latency(i) - stalls[c] >= matter.floor_ns[c];
		if (!matters)
			return;
	}
	SlowRequest r = {due,
			 q.end_ns[i] - due,
			 times.since_ns,
			 q.Number(i),
			 0,
			 static_cast<uint32_t>(sheet->parts.size()),
			 0,
			 q.op[i],
			 q.status[i],
			 t.front_hop};
	NoteRequest(q, i, &r);
	SplitNetwork(context, *context.timelines[t.front_hop], i, 0, &r);
	for (const AtHop &h : times.hops)
		AddPartsAt(context, *context.timelines[h.hop], h, times.since_ns, due, q.Arrived(i), sheet);
	AddPart(Cause::Network, kNoHop, times.between_ns, 0, sheet);
	AddPart(Cause::ClientLate, kNoHop, times.late_ns, 0, sheet);
	AddRequest(&r, sheet);
}

void FindInFront(Context *context)
{
	const Requests &q = context->run.requests;
	context->in_front.Truncate(0);
	if (context->proxy_paths.empty())
		return;
	std::vector<uint32_t> last(context->run.connections.size(), kNoRequest);
	uint32_t *out = context->in_front.Extend(q.size());
	for (size_t i = 0; i < q.size(); i++) {
		uint32_t &before = last[q.connection[i]];
		out[i] = before;
		if (q.status[i] != FT_STATUS_UNSENT)
			before = static_cast<uint32_t>(i);
	}
}

void FindWays(const std::vector<Timeline> &timelines, Context *context)
{
	const Run &run = context->run;
	size_t servers = context->servers.size(), ways_each = context->WaysOfServer();
	size_t first_behind =
	    timelines.size() < run.behind.size() ? 0 : std::max<size_t>(run.servers.size(), 1);
	bool any_behind = timelines.size() >= first_behind + run.behind.size();
	auto recorded = [&](size_t hop) {
		return hop < timelines.size() && timelines[hop].thread < run.threads.size() &&
		       run.threads[timelines[hop].thread].end_ns >
			   run.threads[timelines[hop].thread].start_ns;
	};
	// Where a path ends: at a server behind, or at another thread of the same process.
	auto end_of = [&](size_t server, size_t behind) -> uint16_t {
		if (behind < run.behind.size())
			return any_behind ? HopOf(run, timelines, first_behind + behind) : kNoHop;
		return context->serving.HandsTo(context->servers[server].hop);
	};
	bool any = false;
	std::vector<uint16_t> ends(servers * ways_each, kNoHop);
	for (size_t w = 0; w < ends.size(); w++) {
		uint16_t end = end_of(w / ways_each, w % ways_each);
		if (!recorded(end) || !recorded(context->servers[w / ways_each].hop))
			continue;
		ends[w] = end;
		any = true;
	}
	if (any)
		context->way_ends = std::move(ends);
}

void NoteWays(Context *context)
{
	const Requests &q = context->run.requests;
	if (context->way_ends.empty())
		return;
	for (size_t i = q.lead; i < q.size(); i++) {
		size_t w = context->WayOf(i);
		uint16_t end = context->way_ends[w];
		if (end == kNoHop || (!context->proxy_paths.empty() && context->proxy_paths[w]))
			continue;
		context->proxy_paths.resize(context->way_ends.size());
		context->proxy_paths[w] = std::make_unique<ProxyPath>(
		    ProxyPath{{}, {}, context->servers[w / context->WaysOfServer()].hop, end});
	}
}

void BuildRoutes(Context *context)
{
	const Run &run = context->run;
	uint64_t ways = 0;
	for (const auto &path : context->proxy_paths)
		ways += path != nullptr;
	if (!ways)
		return;
	const RouteGrid grid =
	    GridOf(run.start_ns, run.end_ns, std::clamp<uint64_t>(kSums / ways, 64, kSums / 4));
	for (size_t w = 0; w < context->proxy_paths.size(); w++) {
		ProxyPath *t = context->proxy_paths[w].get();
		if (!t)
			continue;
		const Timeline &front = *context->servers[w / context->WaysOfServer()].timeline,
			       &back = *context->timelines[context->way_ends[w]];
		// If neither is known, there is nothing to store.
		uint64_t from_ns = run.end_ns, to_ns = run.start_ns;
		for (const Timeline *timeline : {&front, &back}) {
			if (timeline->empty())
				continue;
			from_ns = std::min(from_ns, std::max(timeline->start_ns(), run.start_ns));
			to_ns = std::max(to_ns, std::min(timeline->end_ns(), run.end_ns));
		}
		t->route = BuildRoute(front, back, grid, from_ns, to_ns);
	}
}

} // namespace forktail::analysis

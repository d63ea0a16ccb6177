// SPDX-License-Identifier: MIT
// Blames requests that went through a proxy to a server behind it. docs/attribution.md tells the rules.
#include <algorithm>

#include "analysis/apportion.h"
#include "analysis/blame_parts.h"

namespace forktail
{

namespace
{

// How many intervals in which another one was the oldest on a connection are looked at.
constexpr int kHolders = 200;
// How many requests in front of one, on their way at the same time on its connection.
constexpr size_t kInFront = 256;
// Sums of all ways together, of about a kilobyte each.
constexpr uint64_t kSums = 32'768;

void AddTo(const CauseTimes &times, uint16_t hop, Spent *s)
{
	CauseTimes &to = s->At(hop).direct;
	for (int c = 0; c < kCauses; c++)
		to[static_cast<size_t>(c)] += times[static_cast<size_t>(c)];
}

// Adds [from, to) of request i's time on its way, and returns how much of it was idleness of all hops.
uint64_t AddOwn(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, Spent *s)
{
	const Requests &q = context.run.requests;
	if (from_ns >= to_ns)
		return 0;
	if (const Through *t = context.ThroughOf(i)) {
		RouteTimes times;
		AddRequestTimes(t->route, q.start_ns[i], q.end_ns[i], from_ns, to_ns, &times);
		AddTo(times.front, t->front_hop, s);
		AddTo(times.back, t->back_hop, s);
		return times.between_ns;
	}
	const Server &server = context.ServerOf(i);
	CauseTimes times = {};
	AddTimes(*server.timeline, from_ns, to_ns, &times);
	uint64_t idle_ns = times[Index(Cause::Idle)] + times[Index(Cause::Network)];
	times[Index(Cause::Idle)] = times[Index(Cause::Network)] = 0;
	AddTo(times, server.hop, s);
	return idle_ns;
}

// Adds `ns` in the proportions of `all`, whose idle_ns is the rest of it. Returns the share of that.
uint64_t AddScaled(const Spent &all, uint64_t idle_ns, uint64_t ns, Spent *s)
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
		AddTo(parts, all.hops[h].hop, s);
	}
	return share[0];
}

// The same as AddOwn, with what a pipeline adds: a proxy answers in order, so that a request may wait, where
// its own way is idle, for those in front of it that went elsewhere. At each instant that is the oldest one
// without an answer.
uint64_t AddServed(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, Spent *s)
{
	const Requests &q = context.run.requests;
	uint32_t front = context.in_front[i];
	if (front == kNoRequest || q.end_ns[front] <= from_ns)
		return AddOwn(context, i, from_ns, to_ns, s);
	Spent own;
	uint64_t idle_ns = AddOwn(context, i, from_ns, to_ns, &own);
	// What takes no longer than usual waits for nobody.
	if (idle_ns <= context.usual_ns[q.op[i]]) {
		for (const AtHop &h : own.hops)
			AddTo(h.direct, h.hop, s);
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
		uint64_t idle_here = AddOwn(context, i, from_ns, until, s);
		own.hops.clear();
		uint64_t idle_there = AddOwn(context, oldest, from_ns, until, &own);
		idle_ns += AddScaled(own, idle_there, idle_here, s);
		from_ns = until;
	}
	return idle_ns + AddOwn(context, i, from_ns, to_ns, s);
}

// Adds [from, to), in which request i waited for its connection: at each instant what the oldest one on it
// that had no answer waited for. That may have gone to another server behind the proxy.
uint64_t AddHeld(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, Spent *s)
{
	const Requests &q = context.run.requests;
	uint64_t idle_ns = 0;
	uint32_t oldest = context.in_front[i];
	for (int n = 0; to_ns > from_ns && oldest != kNoRequest && n < kHolders;) {
		uint32_t before = context.in_front[oldest];
		uint64_t since = q.start_ns[oldest];
		if (before != kNoRequest)
			since = std::max(since, q.end_ns[before]);
		uint64_t held_from = std::clamp(since, from_ns, to_ns),
			 held_to = std::clamp(q.end_ns[oldest], held_from, to_ns);
		if (held_from < to_ns) {
			idle_ns += AddOwn(context, i, held_to, to_ns, s); // it was free
			idle_ns += AddOwn(context, oldest, held_from, held_to, s);
			to_ns = held_from;
			n++;
		}
		oldest = before;
	}
	return idle_ns + AddOwn(context, i, from_ns, to_ns, s);
}

// Moves what is the backlog's of a request from busy (then between) to the stalls before it, at both hops.
void MoveQueued(const Context &context, const Through &t, size_t i, uint64_t idle_waiting_ns, Spent *s)
{
	constexpr size_t stalls = kStallCauses;
	static_assert(2 * stalls <= kApportionMax);
	uint64_t due = context.run.requests.intended_ns[i];
	uint64_t excess =
	    Excess(s->Sum(Cause::ServerBusy), idle_waiting_ns, context.usual_ns[context.run.requests.op[i]]);
	if (!excess)
		return;
	uint64_t since =
	    std::max({t.backlog.ClearBefore(due), t.route.front->start_ns(), t.route.back->start_ns()});
	if (since >= due)
		return;
	CauseTimes front = {}, back = {};
	AddTimes(*t.route.front, since, due, &front);
	AddTimes(*t.route.back, since, due, &back);
	std::array<uint64_t, 2 * stalls> before, share;
	std::copy_n(front.begin(), stalls, before.begin());
	std::copy_n(back.begin(), stalls, before.begin() + stalls);
	uint64_t stalled = 0;
	for (uint64_t ns : before)
		stalled += ns;
	uint64_t moved = std::min(excess, stalled);
	if (!moved)
		return;
	Apportion(moved, before.data(), before.size(), share.data());
	uint64_t from_busy = std::min(moved, excess - idle_waiting_ns), left = from_busy;
	s->between_ns -= moved - from_busy;
	// In the order of hops: the proxy's own code first, a burst of late answers as a rule.
	for (AtHop &h : s->hops) {
		uint64_t ns = std::min(left, h.direct[Index(Cause::ServerBusy)]);
		h.direct[Index(Cause::ServerBusy)] -= ns;
		left -= ns;
	}
	for (size_t c = 0; c < stalls; c++)
		s->At(t.front_hop).queued[c] += share[c];
	for (size_t c = 0; c < stalls; c++)
		s->At(t.back_hop).queued[c] += share[stalls + c];
	s->since_ns = since;
}

Column<uint32_t> FindInFront(const Run &run)
{
	Column<uint32_t> in_front;
	std::vector<uint32_t> last(run.connections.size(), kNoRequest);
	uint32_t *out = in_front.Extend(run.requests.size());
	for (size_t i = 0; i < run.requests.size(); i++) {
		uint32_t &before = last[run.requests.connection[i]];
		out[i] = before;
		if (run.requests.status[i] != FT_STATUS_UNSENT)
			before = static_cast<uint32_t>(i);
	}
	return in_front;
}

} // namespace

void Spend(const Context &context, const Through &t, size_t i, Spent *s)
{
	const Requests &q = context.run.requests;
	uint64_t due = q.intended_ns[i], until = context.Until(i), sent = q.start_ns[i], end = q.end_ns[i];
	s->hops.clear();
	s->since_ns = due;
	uint64_t waiting = until > due ? AddHeld(context, i, due, until, s) : 0;
	uint64_t idle = AddServed(context, i, sent, end, s);
	uint64_t late_waiting = std::min(context.LateWaiting(i), waiting),
		 late = std::min(context.ClientStalled(i, sent, end), idle);
	s->late_ns = sent - until + late_waiting + late;
	s->between_ns = waiting - late_waiting + idle - late;
	MoveQueued(context, t, i, waiting - late_waiting, s);
}

void BlameThrough(const Context &context, const Through &t, size_t i, Spent *scratch, Sheet *sheet)
{
	const Requests &q = context.run.requests;
	uint64_t due = q.intended_ns[i];
	Spend(context, t, i, scratch);
	SlowRequest r = {due, q.end_ns[i] - due, scratch->since_ns, static_cast<uint32_t>(i), 0, 0,
			 0,   q.op[i],		 q.status[i]};
	r.first_part = static_cast<uint32_t>(sheet->parts.size());
	for (const AtHop &h : scratch->hops)
		for (int c = 0; c < kCauses; c++)
			AddPart(static_cast<Cause>(c), h.hop, h.direct[static_cast<size_t>(c)],
				IsStall(static_cast<Cause>(c)) ? h.queued[static_cast<size_t>(c)] : 0, sheet);
	AddPart(Cause::Network, kNoHop, scratch->between_ns, 0, sheet);
	AddPart(Cause::ClientLate, kNoHop, scratch->late_ns, 0, sheet);
	AddRequest(&r, sheet);
}

void FindWays(const std::vector<Timeline> &timelines, Context *context)
{
	const Run &run = context->run;
	size_t servers = context->servers.size();
	if (run.requests.behind.empty() || timelines.size() < servers + run.behind.size())
		return;
	context->through.resize(servers * run.behind.size());
	std::vector<bool> taken(context->through.size());
	for (size_t i = 0; i < run.requests.size(); i++)
		if (uint32_t behind = run.requests.Behind(i))
			taken[static_cast<size_t>(&context->ServerOf(i) - context->servers.data()) *
				  run.behind.size() +
			      behind - 1] = true;
	uint64_t ways = static_cast<uint64_t>(std::count(taken.begin(), taken.end(), true));
	uint64_t max_sums = std::clamp<uint64_t>(kSums / std::max<uint64_t>(ways, 1), 64, kSums / 4);
	for (size_t w = 0; w < taken.size(); w++) {
		size_t server = w / run.behind.size(), back = servers + w % run.behind.size();
		if (!taken[w] || timelines[server].empty() || timelines[back].empty())
			continue;
		context->through[w] = std::make_unique<Through>(Through{
		    BuildRoute(timelines[server], timelines[back], run.start_ns, run.end_ns, max_sums),
		    {},
		    context->servers[server].hop,
		    HopOf(run, timelines, back)});
	}
	if (ways)
		context->in_front = FindInFront(run);
}

} // namespace forktail

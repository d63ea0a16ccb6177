// SPDX-License-Identifier: MIT
// Blames requests. docs/attribution.md tells the rules; this is how they are kept fast.
//
// A run has millions of requests, few of which matter: the slow ones, and those that would be among the
// slowest percent if some stall were taken out. So a first look, a few nanoseconds a request, bounds from
// below what each would be without any stall; from that follows a latency no faster request of which can
// reach the tail. Only what is at or above it is blamed exactly.
#include "analysis/blame.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "analysis/apportion.h"
#include "analysis/backlog.h"
#include "analysis/curve.h"
#include "analysis/parallel.h"
#include "analysis/percentile.h"
#include "analysis/route.h"
#include "analysis/whatif.h"

namespace forktail
{

namespace
{

// The look at all requests works with doubles and even mixes: a request's stalls may be off by a nanosecond
// per mix it meets and end.
constexpr double kSlackNs = 64;
constexpr size_t kUsualSample = 1'000'000;
// How many requests in front of one, on its place of a connection, are looked at.
constexpr int kHolders = 1000;

struct Server {
	const Timeline *timeline;
	Curve curve;
	Backlog backlog;
	uint16_t hop;
};

// Requests to one server that went through to one behind it.
struct Through {
	Route route;
	Backlog backlog;
	uint16_t front_hop, back_hop;
};

struct Context {
	const Run &run;
	std::vector<Server> servers;
	ConnectionWaits taken;
	std::vector<uint64_t> usual_ns;
	const Clients &clients;
	std::vector<StalledIdle> stalled_idle; // by server, then load thread
	// By server, then by server behind it; null: nothing went there, or it was not recorded.
	std::vector<std::unique_ptr<Through>> through;

	// How long the server was idle and the request's load thread stalled.
	uint64_t ClientStalled(size_t i, uint64_t from_ns, uint64_t to_ns) const
	{
		int32_t client = clients.Of(run, i);
		if (client < 0)
			return 0;
		size_t server = static_cast<size_t>(&ServerOf(i) - servers.data());
		return stalled_idle[server * clients.timelines.size() + static_cast<size_t>(client)].Between(
		    from_ns, to_ns);
	}
	const Server &ServerOf(size_t i) const
	{
		uint32_t server = run.connections[run.requests.connection[i]].server;
		return servers[server < servers.size() ? server : 0];
	}
	const Through *ThroughOf(size_t i) const
	{
		uint32_t behind = run.requests.Behind(i);
		if (through.empty() || behind == 0)
			return nullptr;
		size_t server = static_cast<size_t>(&ServerOf(i) - servers.data());
		return through[server * run.behind.size() + behind - 1].get();
	}
	uint64_t Until(size_t i) const
	{
		return taken.empty() ? run.requests.intended_ns[i] : taken.until_ns[i];
	}
	// How much of the time until then was the load generator's own: it was stalled, or the connection
	// free.
	uint64_t LateWaiting(size_t i) const
	{
		return taken.empty()
			   ? 0
			   : std::max(taken.free_ns[i],
				      ClientStalled(i, run.requests.intended_ns[i], taken.until_ns[i]));
	}
};

// Where a request's exact parts go; one per worker.
struct Sheet {
	Blamed requests;
	std::vector<Part> parts;
};

bool IsAtHop(Cause cause)
{
	return cause != Cause::ClientLate && cause != Cause::Network;
}

void AddPart(Cause cause, uint16_t hop, uint64_t direct_ns, uint64_t queued_ns, Sheet *sheet)
{
	if (direct_ns || queued_ns)
		sheet->parts.push_back({cause, IsAtHop(cause) ? hop : kNoHop, direct_ns, queued_ns});
}

// Closes a request whose parts are the sheet's from r->first_part on.
void AddRequest(SlowRequest *r, Sheet *sheet)
{
	r->part_count = static_cast<uint16_t>(sheet->parts.size() - r->first_part);
	std::sort(sheet->parts.begin() + r->first_part, sheet->parts.end(),
		  [](const Part &a, const Part &b) { return a.total_ns() > b.total_ns(); });
	sheet->requests.push_back(*r);
}

void AddParts(const CauseTimes &direct, const std::array<uint64_t, kStallCauses> &queued, uint16_t hop,
	      SlowRequest *r, Sheet *sheet)
{
	r->first_part = static_cast<uint32_t>(sheet->parts.size());
	for (int c = 0; c < kCauses; c++)
		AddPart(static_cast<Cause>(c), hop, direct[static_cast<size_t>(c)],
			IsStall(static_cast<Cause>(c)) ? queued[static_cast<size_t>(c)] : 0, sheet);
	AddRequest(r, sheet);
}

// How much of a request's time is the backlog's: time the server worked for others beyond what is usual,
// and time it sat idle while the request waited for a connection that a late answer held.
uint64_t Excess(uint64_t busy_ns, uint64_t idle_waiting_ns, uint64_t usual_ns)
{
	return idle_waiting_ns + (busy_ns > usual_ns ? busy_ns - usual_ns : 0);
}

// ---- through a proxy ----

struct AtHop {
	uint16_t hop;
	CauseTimes direct = {};
	std::array<uint64_t, kStallCauses> queued = {};
};

// What one request was spent on, hop by hop.
struct Spent {
	std::vector<AtHop> hops;
	uint64_t between_ns = 0, late_ns = 0, since_ns = 0;

	AtHop &At(uint16_t hop)
	{
		for (AtHop &h : hops)
			if (h.hop == hop)
				return h;
		hops.push_back({hop});
		return hops.back();
	}
	uint64_t Sum(Cause cause) const
	{
		uint64_t ns = 0;
		for (const AtHop &h : hops)
			ns += h.direct[static_cast<size_t>(Index(cause))];
		return ns;
	}
};

void AddTo(const CauseTimes &times, uint16_t hop, Spent *s)
{
	CauseTimes &to = s->At(hop).direct;
	for (int c = 0; c < kCauses; c++)
		to[static_cast<size_t>(c)] += times[static_cast<size_t>(c)];
}

// Adds [from, to) of request i's time on its way, and returns how much of it was idleness of all hops.
uint64_t AddServed(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, Spent *s)
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

// Adds [from, to), in which request i waited for its connection: what those that had its place of it waited
// for. They may have gone to other servers behind the proxy.
uint64_t AddHeld(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, Spent *s)
{
	const Requests &q = context.run.requests;
	uint64_t idle_ns = 0;
	uint32_t holder = static_cast<uint32_t>(i);
	for (int n = 0; to_ns > from_ns && n < kHolders; n++) {
		holder = context.taken.previous[holder];
		if (holder == kNoRequest)
			break;
		uint64_t held_from = std::clamp(q.start_ns[holder], from_ns, to_ns),
			 held_to = std::clamp(q.end_ns[holder], held_from, to_ns);
		idle_ns += AddServed(context, i, held_to, to_ns, s); // it was free, or shortly so
		idle_ns += AddServed(context, holder, held_from, held_to, s);
		to_ns = held_from;
	}
	return idle_ns + AddServed(context, i, from_ns, to_ns, s);
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
	// From the way back first: what is busy there is the proxy's burst of answers.
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

// ---- to a server ----

void BlameRequest(const Context &context, size_t i, Sheet *sheet)
{
	const Requests &q = context.run.requests;
	const Server &server = context.ServerOf(i);
	uint64_t due = q.intended_ns[i], until = context.Until(i), sent = q.start_ns[i], end = q.end_ns[i];

	SlowRequest r = {due, end - due, due, static_cast<uint32_t>(i), 0, 0, 0, q.op[i], q.status[i]};
	CauseTimes direct = {}, waiting = {};
	AddTimes(*server.timeline, due, until, &waiting);
	AddTimes(*server.timeline, sent, end, &direct);
	uint64_t late_waiting = std::min(context.LateWaiting(i), waiting[Index(Cause::Idle)]),
		 late = context.ClientStalled(i, sent, end);
	waiting[Index(Cause::Idle)] -= late_waiting;
	direct[Index(Cause::Idle)] -= late;
	uint64_t idle_waiting = waiting[Index(Cause::Idle)];
	for (int c = 0; c < kTimelineCauses; c++)
		direct[c] += waiting[c];
	direct[Index(Cause::ClientLate)] += sent - until + late_waiting + late;
	direct[Index(Cause::Network)] += direct[Index(Cause::Idle)];
	direct[Index(Cause::Idle)] = 0;

	std::array<uint64_t, kStallCauses> queued = {};
	uint64_t busy = direct[Index(Cause::ServerBusy)], usual = context.usual_ns[q.op[i]];
	if (uint64_t excess = Excess(busy, idle_waiting, usual)) {
		uint64_t since = std::max(server.backlog.ClearBefore(due), server.timeline->start_ns());
		CauseTimes before = {};
		if (since < due)
			AddTimes(*server.timeline, since, due, &before);
		uint64_t stalled = 0;
		for (int c = 0; c < kStallCauses; c++)
			stalled += before[c];
		if (uint64_t moved = std::min(excess, stalled)) {
			Apportion(moved, before.data(), kStallCauses, queued.data());
			uint64_t from_busy = std::min(moved, excess - idle_waiting);
			direct[Index(Cause::ServerBusy)] -= from_busy;
			direct[Index(Cause::Network)] -= moved - from_busy;
			r.since_ns = since;
		}
	}
	AddParts(direct, queued, server.hop, &r, sheet);
}

// The quick look at one request: the same rules as BlameRequest's, in doubles.
struct Glance {
	double stall, busy, net, late, latency;
};

// Through a proxy there is no quicker way.
Glance LookThrough(const Context &context, const Through &t, size_t i, Spent *s)
{
	Spend(context, t, i, s);
	uint64_t stall = 0;
	for (const AtHop &h : s->hops)
		for (size_t c = 0; c < kStallCauses; c++)
			stall += h.direct[c] + h.queued[c];
	return {static_cast<double>(stall), static_cast<double>(s->Sum(Cause::ServerBusy)),
		static_cast<double>(s->between_ns), static_cast<double>(s->late_ns),
		static_cast<double>(context.run.requests.Latency(i))};
}

// `hints` are per server, see UsageUntil.
Glance Look(const Context &context, size_t i, std::vector<uint32_t> *hints)
{
	const Requests &q = context.run.requests;
	const Server &server = context.ServerOf(i);
	uint32_t *hint = &(*hints)[static_cast<size_t>(&server - context.servers.data())];
	uint64_t due = q.intended_ns[i], until = context.Until(i), sent = q.start_ns[i];
	Usage waiting = UsageOf(server.curve, due, until, hint),
	      u = UsageOf(server.curve, sent, q.end_ns[i], hint);
	double late_waiting = std::min(static_cast<double>(context.LateWaiting(i)), waiting.idle),
	       late = static_cast<double>(context.ClientStalled(i, sent, q.end_ns[i]));
	waiting.idle -= late_waiting;
	u.idle -= late;
	u.stall += waiting.stall;
	u.busy += waiting.busy;
	u.idle += waiting.idle;
	u.socket += waiting.socket;
	double from_busy = std::max(0.0, u.busy - static_cast<double>(context.usual_ns[q.op[i]]));
	double excess = waiting.idle + from_busy;
	if (excess > 0) {
		uint64_t since = std::max(server.backlog.ClearBefore(due), server.timeline->start_ns());
		uint32_t near = *hint;
		double stalled = UsageOf(server.curve, since, due, &near).stall;
		double moved = std::min(excess, stalled);
		from_busy = std::min(moved, from_busy);
		u.busy -= from_busy;
		u.idle -= moved - from_busy;
		u.stall += moved;
	}
	return {u.stall, u.busy, u.idle + u.socket, static_cast<double>(sent - until) + late_waiting + late,
		static_cast<double>(q.end_ns[i] - due)};
}

uint64_t Whole(double ns)
{
	return ns > 0 ? static_cast<uint64_t>(ns + 0.5) : 0;
}

// Did a stall that was long enough for a span lie in [from, to)?
bool MetStall(const Timeline &t, uint64_t from_ns, uint64_t to_ns)
{
	from_ns = std::max(from_ns, t.start_ns());
	to_ns = std::min(to_ns, t.end_ns());
	if (from_ns >= to_ns)
		return false;
	for (uint32_t p = PieceAt(t, from_ns); t.pieces[p].start_ns < to_ns; p++)
		if (t.pieces[p].span != kNoSpan && IsStall(t.pieces[p].cause))
			return true;
	return false;
}

// Per op, the median latency of answered requests that met no stall worth a span. If none did, the median
// of all of them: better a backlog overlooked than one invented. Of a long log every n-th request is taken,
// which leaves the median of a million of them.
std::vector<uint64_t> UsualLatencies(const Context &context)
{
	const Requests &q = context.run.requests;
	std::vector<std::vector<uint64_t>> calm(256), all(256);
	size_t step = q.size() / kUsualSample + 1;
	for (size_t i = 0; i < q.size(); i += step) {
		if (IsError(q.status[i]))
			continue;
		all[q.op[i]].push_back(q.Latency(i));
		const Through *t = context.ThroughOf(i);
		if (!MetStall(*context.ServerOf(i).timeline, q.intended_ns[i], q.end_ns[i]) &&
		    !(t && MetStall(*t->route.back, q.intended_ns[i], q.end_ns[i])))
			calm[q.op[i]].push_back(q.Latency(i));
	}
	std::vector<uint64_t> usual(256);
	for (size_t op = 0; op < 256; op++) {
		std::vector<uint64_t> &values = calm[op].empty() ? all[op] : calm[op];
		if (values.empty())
			continue;
		uint64_t *median = values.data() + Rank(values.size(), 50) - 1;
		std::nth_element(values.data(), median, values.data() + values.size());
		usual[op] = *median;
	}
	return usual;
}

struct FirstLook {
	LogHistogram calm; // lower bounds of what requests would be without any stall
	WithoutHistograms without;
};

FirstLook LookAtAll(const Context &context)
{
	const Requests &q = context.run.requests;
	std::vector<FirstLook> workers(Workers(q.size()));
	ForRanges(q.size(), [&](size_t begin, size_t end, size_t w) {
		FirstLook &look = workers[w];
		auto without = [&](Cause c) -> LogHistogram & {
			return look.without[static_cast<size_t>(Index(c) - kStallCauses)];
		};
		std::vector<uint32_t> hints(context.servers.size());
		Spent spent;
		for (size_t i = begin; i < end; i++) {
			if (IsError(q.status[i]))
				continue;
			const Through *t = context.ThroughOf(i);
			Glance g = t ? LookThrough(context, *t, i, &spent) : Look(context, i, &hints);
			look.calm.Add(Whole(g.latency - g.stall - kSlackNs));
			without(Cause::ServerBusy).Add(Whole(g.latency - g.busy));
			without(Cause::ClientLate).Add(Whole(g.latency - g.late));
			without(Cause::Network).Add(Whole(g.latency - g.net));
			without(Cause::Unknown).Add(Whole(g.stall + g.busy + g.net + g.late));
		}
	});
	for (size_t w = 1; w < workers.size(); w++) {
		workers[0].calm.Merge(workers[w].calm);
		for (size_t c = 0; c < workers[0].without.size(); c++)
			workers[0].without[c].Merge(workers[w].without[c]);
	}
	return std::move(workers[0]);
}

uint64_t ThresholdOf(const Threshold &threshold, uint64_t *values, size_t count)
{
	if (threshold.ns || count == 0)
		return threshold.ns;
	double percentile = threshold.percentile > 0 ? threshold.percentile : 99;
	uint64_t *nth = values + Rank(count, percentile) - 1;
	std::nth_element(values, nth, values + count);
	return *nth;
}

// Puts the workers' sheets together, picks the slow ones and fills the table of causes.
void Conclude(std::vector<Sheet> *sheets, const WithoutHistograms *histograms, uint64_t answered,
	      Blame *blame)
{
	Blamed blamed;
	size_t requests = 0, parts = 0;
	for (const Sheet &s : *sheets) {
		requests += s.requests.size();
		parts += s.parts.size();
	}
	blamed.reserve(requests);
	blame->parts.reserve(parts);
	for (Sheet &s : *sheets) {
		for (SlowRequest &r : s.requests) {
			r.first_part += static_cast<uint32_t>(blame->parts.size());
			blamed.push_back(r);
		}
		blame->parts.insert(blame->parts.end(), s.parts.begin(), s.parts.end());
		s = Sheet();
	}
	for (const SlowRequest &r : blamed) {
		if (r.latency_ns < blame->threshold_ns)
			continue;
		blame->slow.push_back(r);
		blame->slow_ns += r.latency_ns;
	}
	std::stable_sort(blame->slow.begin(), blame->slow.end(),
			 [](const SlowRequest &a, const SlowRequest &b) { return a.start_ns < b.start_ns; });
	FillCauses(blamed, histograms, answered, blame);
}

// Timelines of one process are one hop.
uint16_t HopOf(const Run &run, const std::vector<Timeline> &timelines, size_t index)
{
	if (timelines[index].thread >= run.threads.size())
		return kNoHop;
	for (size_t i = 0; i < index; i++)
		if (timelines[i].thread < run.threads.size() &&
		    run.threads[timelines[i].thread].tgid == run.threads[timelines[index].thread].tgid)
			return static_cast<uint16_t>(i);
	return static_cast<uint16_t>(index);
}

// The ways through a proxy that requests took, without their backlogs.
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
	for (size_t w = 0; w < taken.size(); w++) {
		size_t server = w / run.behind.size(), back = servers + w % run.behind.size();
		if (!taken[w] || timelines[server].empty() || timelines[back].empty())
			continue;
		context->through[w] = std::make_unique<Through>(
		    Through{BuildRoute(timelines[server], timelines[back], run.start_ns, run.end_ns),
			    {},
			    context->servers[server].hop,
			    HopOf(run, timelines, back)});
	}
}

HopRow &RowOf(uint16_t hop, std::vector<HopRow> *rows)
{
	for (HopRow &row : *rows)
		if (row.hop == hop)
			return row;
	rows->push_back({hop});
	return rows->back();
}

// How many requests of the run came by each hop.
void CountServed(const Context &context, Blame *blame)
{
	std::vector<uint64_t> by_server(context.servers.size()), by_way(context.through.size());
	for (size_t i = 0; i < context.run.requests.size(); i++) {
		size_t server = static_cast<size_t>(&context.ServerOf(i) - context.servers.data());
		by_server[server]++;
		if (context.ThroughOf(i))
			by_way[server * context.run.behind.size() + context.run.requests.Behind(i) - 1]++;
	}
	for (size_t s = 0; s < by_server.size(); s++)
		if (context.servers[s].hop != kNoHop && by_server[s])
			RowOf(context.servers[s].hop, &blame->hops).served += by_server[s];
	for (size_t w = 0; w < by_way.size(); w++) {
		if (!context.through[w])
			continue;
		RowOf(context.through[w]->front_hop, &blame->hops).proxy = true;
		RowOf(context.through[w]->back_hop, &blame->hops).served += by_way[w];
	}
}

// What passed at each hop, over the slow requests.
void FillHops(Blame *blame)
{
	std::vector<std::array<uint64_t, kCauses>> times;
	for (const SlowRequest &r : blame->slow) {
		for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++) {
			const Part &part = blame->parts[p];
			if (part.hop == kNoHop)
				continue;
			HopRow &row = RowOf(part.hop, &blame->hops);
			bool seen = false;
			for (size_t before = r.first_part; before < p; before++)
				seen |= blame->parts[before].hop == part.hop;
			row.requests += !seen;
			row.time_ns += part.total_ns();
			times.resize(blame->hops.size());
			times[static_cast<size_t>(&row - blame->hops.data())]
			     [static_cast<size_t>(Index(part.cause))] += part.total_ns();
		}
	}
	times.resize(blame->hops.size());
	for (size_t h = 0; h < blame->hops.size(); h++) {
		HopRow &row = blame->hops[h];
		if (blame->slow_ns)
			row.share = static_cast<double>(row.time_ns) / static_cast<double>(blame->slow_ns);
		for (int c = 0; c < kCauses; c++)
			if (uint64_t ns = times[h][static_cast<size_t>(c)])
				row.causes.push_back({static_cast<Cause>(c), ns});
		std::stable_sort(row.causes.begin(), row.causes.end(),
				 [](const HopCause &a, const HopCause &b) { return a.time_ns > b.time_ns; });
	}
	std::stable_sort(blame->hops.begin(), blame->hops.end(),
			 [](const HopRow &a, const HopRow &b) { return a.time_ns > b.time_ns; });
}

Blame BlameRequests(const Run &run, const std::vector<Timeline> &timelines, const Threshold &threshold,
		    const Clients &clients)
{
	const Requests &q = run.requests;
	Blame blame;
	blame.count = q.size();

	uint64_t answered = 0;
	{
		Column<uint64_t> values;
		values.Extend(q.size());
		for (size_t i = 0; i < q.size(); i++) {
			blame.by_status[q.status[i]]++;
			if (!IsError(q.status[i]))
				values[answered++] = q.Latency(i);
		}
		blame.errors = q.size() - answered;
		blame.latencies = LatenciesOf(values.data(), answered);
		blame.threshold_ns = ThresholdOf(threshold, values.data(), answered);
	}

	Context context = {run, {}, WaitsForConnection(run, !q.behind.empty()), {}, clients, {}, {}};
	size_t servers = std::min(timelines.size(), std::max<size_t>(run.servers.size(), 1));
	if (run.behind.empty())
		servers = timelines.size();
	for (size_t s = 0; s < servers; s++) {
		const Timeline &t = timelines[s];
		context.servers.push_back({&t, BuildCurve(t), {}, HopOf(run, timelines, s)});
		for (const Timeline &client : clients.timelines)
			context.stalled_idle.push_back(FindStalledIdle(t, client));
	}
	FindWays(timelines, &context);
	context.usual_ns = UsualLatencies(context);
	for (uint32_t s = 0; s < context.servers.size(); s++)
		context.servers[s].backlog =
		    BuildBacklog(run, timelines[s], s, context.usual_ns, context.taken);
	for (size_t w = 0; w < context.through.size(); w++)
		if (Through *t = context.through[w].get())
			t->backlog = BuildBacklogThrough(
			    run, *t->route.front, static_cast<uint32_t>(w / run.behind.size()),
			    *t->route.back, static_cast<uint32_t>(w % run.behind.size() + 1),
			    context.usual_ns, context.taken);
	blame.usual_ns.assign(context.usual_ns.begin(),
			      context.usual_ns.begin() + static_cast<ptrdiff_t>(run.ops.size()));

	FirstLook look = LookAtAll(context);
	uint64_t blame_from = std::min(blame.threshold_ns, look.calm.PercentileFloor(99));
	std::vector<Sheet> sheets(Workers(q.size()));
	ForRanges(q.size(), [&](size_t begin, size_t end, size_t w) {
		Spent scratch;
		for (size_t i = begin; i < end; i++) {
			if (q.Latency(i) < (IsError(q.status[i]) ? blame.threshold_ns : blame_from))
				continue;
			if (const Through *t = context.ThroughOf(i))
				BlameThrough(context, *t, i, &scratch, &sheets[w]);
			else
				BlameRequest(context, i, &sheets[w]);
		}
	});
	Conclude(&sheets, &look.without, answered, &blame);
	CountServed(context, &blame);
	FillHops(&blame);
	return blame;
}

Blame BlameIterations(const Run &run, const std::vector<Timeline> &timelines, const Threshold &threshold)
{
	Blame blame;
	blame.from_iterations = true;
	std::vector<Sheet> sheets(1);
	std::vector<uint64_t> values;
	for (const Timeline &timeline : timelines) {
		if (timeline.thread >= run.threads.size())
			continue;
		uint16_t hop = HopOf(run, timelines, static_cast<size_t>(&timeline - timelines.data()));
		RowOf(hop, &blame.hops).served += run.threads[timeline.thread].iteration_count;
		const Thread &thread = run.threads[timeline.thread];
		for (size_t i = thread.first_iteration; i < thread.first_iteration + thread.iteration_count;
		     i++) {
			const ft_span &s = run.iterations[i];
			SlowRequest r = {
			    s.start_ns, s.duration_ns, s.start_ns, static_cast<uint32_t>(i), 0, 0, 0,
			    0,		FT_STATUS_OK};
			CauseTimes direct = {};
			AddTimes(timeline, s.start_ns, s.start_ns + s.duration_ns, &direct);
			direct[Index(Cause::Network)] += direct[Index(Cause::Idle)];
			AddParts(direct, {}, hop, &r, &sheets[0]);
			values.push_back(s.duration_ns);
		}
	}
	blame.count = values.size();
	blame.by_status[FT_STATUS_OK] = values.size();
	blame.latencies = LatenciesOf(values.data(), values.size());
	blame.threshold_ns = ThresholdOf(threshold, values.data(), values.size());
	Conclude(&sheets, nullptr, blame.count, &blame);
	FillHops(&blame);
	return blame;
}

} // namespace

bool ParseThreshold(const std::string &text, Threshold *threshold, std::string *error)
{
	*error = "--slow takes a duration or a percentile: 1ms, 500us, 2s, p99, p99.9; not '" + text + "'";
	bool percentile = !text.empty() && text[0] == 'p';
	const char *number = text.c_str() + (percentile ? 1 : 0);
	if (!isdigit(static_cast<unsigned char>(*number)))
		return false;
	char *unit = nullptr;
	double value = strtod(number, &unit);
	if (!std::isfinite(value) || value <= 0)
		return false;
	*threshold = {};
	if (percentile) {
		threshold->percentile = value;
		return *unit == '\0' && value < 100;
	}
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	for (const auto &u : units) {
		if (std::string(unit) == u.name) {
			threshold->ns = static_cast<uint64_t>(value * u.ns);
			return threshold->ns > 0 && value * u.ns < 1e18;
		}
	}
	return false;
}

Blame BlameRun(const Run &run, const std::vector<Timeline> &timelines, const Threshold &threshold,
	       const Clients &clients)
{
	return run.requests.size() ? BlameRequests(run, timelines, threshold, clients)
				   : BlameIterations(run, timelines, threshold);
}

} // namespace forktail

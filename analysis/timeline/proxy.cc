// SPDX-License-Identifier: MIT
// Blames requests that went through a proxy to a server behind it. The proxy answers in order. So where a
// request's own path (blame.h) is idle, it may wait for one ahead of it on its connection: then that
// request's path has the cause. docs/how-it-works/attribution.md has the rules.
#include <algorithm>
#include <numeric>

#include "analysis/blame.h"
#include "analysis/run.h"
#include "analysis/timeline.h"

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

// The sums of Divide (blame.h) by hop. Outages are not considered, because the proxy answers in them, though
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

// The sum of both directions does not depend on the clocks: an offset takes from one direction what it gives
// to the other. So the sum stays network time, and only the legs become unknown where the clocks are too
// uncertain.

namespace
{

const RecordingFile *FileOf(const Run &run, uint32_t file)
{
	return file < run.files.size() ? &run.files[file] : nullptr;
}

const RecordingFile *LoadFile(const Run &run, uint32_t connection)
{
	for (const Load &load : run.loads)
		if (connection - load.first_connection < load.connection_count)
			return FileOf(run, load.file);
	return nullptr;
}

} // namespace

uint64_t ClocksBound(const Run &run, uint32_t connection, uint32_t server_thread)
{
	if (!run.clocks_bound_ns)
		return 0;
	const RecordingFile *load = LoadFile(run, connection),
			    *server = server_thread < run.threads.size()
					  ? FileOf(run, run.threads[server_thread].file)
					  : nullptr;
	if (!load || !server)
		return run.clocks_bound_ns;
	return load->clock_id == server->clock_id ? 0 : load->bound_ns + server->bound_ns;
}

Legs LegsOf(const Blame &blame, const SlowRequest &r)
{
	Legs legs;
	uint64_t network_ns = 0;
	for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++) {
		const Part &part = blame.parts[p];
		uint64_t *leg = part.cause == Cause::ClientLate ? &legs.late_ns
				: part.cause == Cause::Network	? &network_ns
				: part.cause == Cause::Unknown	? &legs.unknown_ns
								: &legs.server_ns;
		*leg += part.total_ns();
	}
	legs.unread_ns = std::min(r.unread_ns, legs.late_ns);
	legs.late_ns -= legs.unread_ns;
	// Idle time with another cause (a stalled load generator, uncertain clocks) may belong to either
	// direction.
	const uint64_t ways_ns = r.way.request_ns + r.way.answer_ns,
		       elsewhere_ns = ways_ns - std::min(ways_ns, network_ns);
	legs.there_ns = r.way.request_ns - std::min(r.way.request_ns, elsewhere_ns);
	legs.back_ns = r.way.answer_ns - std::min(r.way.answer_ns, elsewhere_ns);
	legs.unknown_ns += network_ns - legs.there_ns - legs.back_ns;
	return legs;
}

// A hop's number is its index among timelines: servers in the log's order, then those behind a proxy. So the
// address comes from the load generator, and the process name from the recorder.

namespace
{

// The index among servers and those behind them. For a further thread of a process it is that of the first
// one.
size_t PlaceOfProcess(const Run &run, const std::vector<uint32_t> &threads, uint16_t hop, uint32_t pid)
{
	size_t places = run.servers.size() + run.behind.size();
	if (hop < places)
		return hop;
	for (size_t i = 0; i < std::min(places, threads.size()); i++)
		if (threads[i] < run.threads.size() && run.threads[threads[i]].tgid == pid)
			return i;
	return places;
}

std::string ThreadText(const Run &run, const Thread &thread)
{
	if (thread.tid == thread.tgid)
		return "main thread";
	for (const Thread &other : run.threads)
		if (other.tgid == thread.tgid && other.tid != thread.tid && other.comm == thread.comm)
			return thread.comm + " " + std::to_string(OwnId(run, thread.tid));
	return thread.comm;
}

} // namespace

std::string HopName::text() const
{
	return comm + " " + (address.empty() ? std::to_string(pid) : address) + OnHost(host) +
	       (thread.empty() ? "" : ", " + thread);
}

const char *RoleOf(const HopRow &row, const HopName &name)
{
	return row.proxy ? "proxy" : name.thread.empty() ? "instance" : "thread";
}

std::vector<uint32_t> HopThreads(const std::vector<Timeline> &timelines)
{
	std::vector<uint32_t> threads;
	for (const Timeline &t : timelines)
		threads.push_back(t.thread);
	return threads;
}

HopName HopNameOf(const Run &run, const std::vector<uint32_t> &threads, uint16_t hop, bool from_iterations)
{
	HopName name;
	if (hop >= threads.size() || threads[hop] >= run.threads.size())
		return name;
	const Thread &thread = run.threads[threads[hop]];
	const uint32_t process = thread.tgid;
	name.pid = OwnId(run, process);
	name.tid = OwnId(run, thread.tid);
	name.host = HostOf(run, thread);
	name.comm = thread.comm;
	for (const Thread &main : run.threads) // its name is the process name
		if (main.tid == process)
			name.comm = main.comm;
	for (const Target &target : run.targets)
		if (target.pid == process && !target.comm.empty())
			name.comm = target.comm;
	for (uint32_t t : threads)
		if (t < run.threads.size() && run.threads[t].tgid == process &&
		    run.threads[t].tid != thread.tid)
			name.thread = ThreadText(run, thread);
	if (from_iterations)
		return name;
	size_t place = PlaceOfProcess(run, threads, hop, process);
	if (place < run.servers.size())
		name.address = run.servers[place];
	else if (place - run.servers.size() < run.behind.size())
		name.address = run.behind[place - run.servers.size()].address;
	return name;
}

// Rows are searched linearly, because few processes are on a request's path.

HopRow &RowOf(uint16_t hop, std::vector<HopRow> *rows)
{
	for (HopRow &row : *rows)
		if (row.hop == hop)
			return row;
	rows->push_back({hop});
	return rows->back();
}

uint16_t HopOf(const Run &run, const std::vector<Timeline> &timelines, size_t index)
{
	if (timelines[index].thread >= run.threads.size())
		return kNoHop;
	for (size_t i = 0; i < index; i++)
		if (timelines[i].thread < run.threads.size() &&
		    run.threads[timelines[i].thread].tid == run.threads[timelines[index].thread].tid)
			return static_cast<uint16_t>(i);
	return static_cast<uint16_t>(index);
}

void CountServed(uint16_t hop, uint64_t requests, Blame *blame)
{
	if (hop != kNoHop && requests)
		RowOf(hop, &blame->hops).served += requests;
}

void CountServed(const Context &context, const std::vector<uint64_t> &by_server,
		 const std::vector<uint64_t> &by_way, Blame *blame)
{
	for (size_t s = 0; s < by_server.size(); s++)
		CountServed(context.servers[s].hop, by_server[s], blame);
	for (size_t w = 0; w < by_way.size(); w++) {
		if (!context.proxy_paths[w])
			continue;
		if (w % context.WaysOfServer() < context.run.behind.size())
			RowOf(context.proxy_paths[w]->front_hop, &blame->hops).proxy = true;
		CountServed(context.proxy_paths[w]->back_hop, by_way[w], blame);
	}
}

// A request's own path: its route's sums, or its server's timeline if no route is known.

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

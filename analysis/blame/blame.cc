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

#include "analysis/apportion.h"
#include "analysis/blame_parts.h"
#include "analysis/parallel.h"
#include "analysis/percentile.h"

namespace forktail
{

namespace
{

// The look at all requests works with doubles and even mixes: a request's stalls may be off by a nanosecond
// per mix it meets and end.
constexpr double kSlackNs = 64;
constexpr size_t kUsualSample = 1'000'000;
// Through a proxy a look costs microseconds: of more requests, one of several stands for all.
constexpr size_t kLooksThrough = 200'000;
void AddParts(const CauseTimes &direct, const std::array<uint64_t, kStallCauses> &queued, uint16_t hop,
	      SlowRequest *r, Sheet *sheet)
{
	r->first_part = static_cast<uint32_t>(sheet->parts.size());
	for (int c = 0; c < kCauses; c++)
		AddPart(static_cast<Cause>(c), hop, direct[static_cast<size_t>(c)],
			IsStall(static_cast<Cause>(c)) ? queued[static_cast<size_t>(c)] : 0, sheet);
	AddRequest(r, sheet);
}

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
	// The server that the log names is the one that answered in the end: that it was idle meanwhile says
	// nothing.
	if (uint64_t without = context.WithoutServer(i)) {
		for (Cause c : {Cause::Unknown, Cause::ClientLate, Cause::Network}) {
			uint64_t moved = std::min(without, direct[Index(c)]);
			direct[Index(c)] -= moved;
			direct[Index(Cause::NoServer)] += moved;
			without -= moved;
		}
		idle_waiting = 0;
	}

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
	double idle_late = static_cast<double>(sent - until) + late_waiting + late,
	       latency = static_cast<double>(q.end_ns[i] - due);
	if (uint64_t without = context.WithoutServer(i)) {
		double left = static_cast<double>(without),
		       unknown = latency - u.stall - u.busy - u.idle - u.socket - idle_late;
		for (double *part : {&unknown, &idle_late, &u.idle, &u.socket}) {
			double moved = std::clamp(*part, 0.0, left);
			*part -= moved;
			u.stall += moved;
			left -= moved;
		}
		waiting.idle = 0;
	}
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
	return {u.stall, u.busy, u.idle + u.socket, idle_late, latency};
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
	const size_t step = q.size() / kLooksThrough + 1;
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
			if (t && i % step)
				continue;
			Glance g = t ? LookThrough(context, *t, i, &spent) : Look(context, i, &hints);
			for (size_t n = 0; n < (t ? step : 1); n++) {
				look.calm.Add(Whole(g.latency - g.stall - kSlackNs));
				without(Cause::ServerBusy).Add(Whole(g.latency - g.busy));
				without(Cause::ClientLate).Add(Whole(g.latency - g.late));
				without(Cause::Network).Add(Whole(g.latency - g.net));
				without(Cause::Unknown).Add(Whole(g.stall + g.busy + g.net + g.late));
			}
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

	Context context = {run, {}, WaitsForConnection(run), {}, clients, {}, {}, {}, OutagesOf(run)};
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
		CountServed(hop, run.threads[timeline.thread].iteration_count, &blame);
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

bool IsAtHop(Cause cause)
{
	return cause != Cause::ClientLate && cause != Cause::Network && cause != Cause::NoServer;
}

} // namespace

void AddPart(Cause cause, uint16_t hop, uint64_t direct_ns, uint64_t queued_ns, Sheet *sheet)
{
	if (direct_ns || queued_ns)
		sheet->parts.push_back({cause, IsAtHop(cause) ? hop : kNoHop, direct_ns, queued_ns});
}

void AddRequest(SlowRequest *r, Sheet *sheet)
{
	r->part_count = static_cast<uint16_t>(sheet->parts.size() - r->first_part);
	std::sort(sheet->parts.begin() + r->first_part, sheet->parts.end(),
		  [](const Part &a, const Part &b) { return a.total_ns() > b.total_ns(); });
	sheet->requests.push_back(*r);
}

uint64_t Excess(uint64_t busy_ns, uint64_t idle_waiting_ns, uint64_t usual_ns)
{
	return idle_waiting_ns + (busy_ns > usual_ns ? busy_ns - usual_ns : 0);
}

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

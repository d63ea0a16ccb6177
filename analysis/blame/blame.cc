// SPDX-License-Identifier: MIT
// Blames requests. docs/attribution.md tells the rules; this is how they are kept fast.
//
// A run has millions of requests, few of which matter: the slow ones, and those that would be among the
// slowest percent if some stall were taken out. So a first look, a few nanoseconds a request, bounds from
// below what each would be without any stall; from that follows a latency no faster request of which can
// reach the tail. Only what is at or above it is blamed exactly.
#include "blame.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "analysis/timeline/apportion.h"
#include "arrivals.h"
#include "context.h"
#include "divide.h"
#include "elsewhere.h"
#include "first_look.h"
#include "hop_rows.h"
#include "parallel.h"
#include "percentile.h"
#include "sheet.h"
#include "through.h"
#include "units/parse.h"

namespace forktail
{

namespace
{

constexpr size_t kUsualSample = 1'000'000;

// The sums of Divide (divide.h), exact and by cause.
struct ExactSums {
	using Number = uint64_t;
	static constexpr bool kOutages = true;

	const Server &server;
	CauseTimes direct = {}, before = {};
	std::array<uint64_t, kStallCauses> queued = {};
	uint64_t network = 0, late = 0;
	uint64_t since_ns = 0; // when the stalls that it queued for began; 0: it didn't
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
	uint64_t StalledBefore(uint64_t due_ns)
	{
		clear_ns = std::max(server.backlog.ClearBefore(due_ns), server.timeline->start_ns());
		if (clear_ns < due_ns)
			AddTimes(*server.timeline, clear_ns, due_ns, &before);
		return std::accumulate(before.begin(), before.begin() + kStallCauses, uint64_t{0});
	}
	void MoveToQueued(uint64_t moved, uint64_t from_busy)
	{
		Apportion(moved, before.data(), queued.size(), queued.data());
		direct[Index(Cause::ServerBusy)] -= from_busy;
		since_ns = clear_ns;
	}
};

void BlameRequest(const Context &context, size_t i, Sheet *sheet)
{
	const Requests &q = context.run.requests;
	const Server &server = context.ServerOf(i);
	uint64_t due = q.intended_ns[i];
	ExactSums sums = {server};
	Divide(context, i, &sums);
	sums.direct[Index(Cause::Network)] += sums.network;
	sums.direct[Index(Cause::ClientLate)] += sums.late;
	SlowRequest r = {due,
			 q.end_ns[i] - due,
			 sums.since_ns ? sums.since_ns : due,
			 static_cast<uint32_t>(i),
			 0,
			 static_cast<uint32_t>(sheet->parts.size()),
			 0,
			 q.op[i],
			 q.status[i],
			 server.hop};
	NoteArrival(q, &r);
	if (r.arrived)
		r.way = FindOnTheWay(*server.timeline, q.start_ns[i], q.Arrived(i));
	AddPartsAt(context, *server.timeline, {server.hop, sums.direct, sums.queued}, r.since_ns, due,
		   q.Arrived(i), sheet);
	AddRequest(&r, sheet);
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
		if (!MetStall(*context.ServerOf(i).timeline, q.intended_ns[i], q.Arrived(i)) &&
		    !(t && MetStall(*t->route.back, q.intended_ns[i], q.Arrived(i))))
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

void FindHops(const std::vector<Timeline> &timelines, Context *context)
{
	context->hop_of_thread.assign(context->run.threads.size(), kNoHop);
	for (size_t i = timelines.size(); i-- > 0;)
		if (timelines[i].thread < context->run.threads.size())
			context->hop_of_thread[timelines[i].thread] = static_cast<uint16_t>(i);
	for (const Timeline &t : timelines)
		context->timelines.push_back(&t);
}

// Who serves requests, and by whom each was served.
void FindServers(const std::vector<Timeline> &timelines, Context *context)
{
	static const Timeline nobody;
	const Run &run = context->run;
	const Serving &serving = context->serving;
	size_t first = std::min(timelines.size(), std::max<size_t>(run.servers.size(), 1));
	if (run.behind.empty() && serving.connections.empty())
		first = timelines.size();
	auto add = [&](const Timeline &t, uint16_t hop) {
		context->servers.push_back({&t, BuildCurve(t), {}, hop});
		for (const Timeline &client : context->clients.timelines)
			context->stalled_idle.push_back(FindStalledIdle(t, client));
	};
	for (size_t s = 0; s < first; s++)
		add(timelines[s], HopOf(run, timelines, s));
	if (serving.connections.empty())
		return;
	std::vector<uint16_t> server_of(timelines.size()); // by hop
	for (size_t s = first; s-- > 0;)
		server_of[s] = static_cast<uint16_t>(s);
	for (uint16_t hop : serving.more) {
		server_of[hop] = static_cast<uint16_t>(context->servers.size());
		add(timelines[hop], hop);
	}
	uint16_t unknown = static_cast<uint16_t>(context->servers.size());
	add(nobody, kNoHop);
	uint16_t *served_by = context->served_by.Extend(run.requests.size());
	for (size_t i = 0; i < run.requests.size(); i++) {
		served_by[i] = unknown;
		for (const Serving::Stretch &s : serving.connections[run.requests.connection[i]])
			if (s.from_ns <= run.requests.start_ns[i] && run.requests.start_ns[i] < s.to_ns)
				served_by[i] = server_of[s.hop];
	}
}

void BuildBacklogs(Context *context)
{
	const Run &run = context->run;
	for (uint32_t s = 0; s < context->servers.size(); s++)
		context->servers[s].backlog =
		    BuildBacklog(run, {*context->servers[s].timeline, s, context->served_by},
				 context->usual_ns, context->taken);
	for (size_t w = 0; w < context->through.size(); w++) {
		Through *t = context->through[w].get();
		if (!t)
			continue;
		size_t behind = w % context->WaysOfServer();
		t->backlog = BuildBacklog(
		    run,
		    {*t->route.front, static_cast<uint32_t>(w / context->WaysOfServer()), context->served_by,
		     t->route.back, behind < run.behind.size() ? static_cast<uint32_t>(behind + 1) : 0},
		    context->usual_ns, context->taken);
	}
}

Blame BlameRequests(const Run &run, const std::vector<Timeline> &timelines, const Threshold &threshold,
		    const Clients &clients, const Serving &serving)
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

	Context context = {run, serving,       {}, {}, {}, {}, WaitsForConnection(run), {}, clients, {}, {},
			   {},	OutagesOf(run)};
	FindHops(timelines, &context);
	FindServers(timelines, &context);
	FindWays(timelines, &context);
	context.usual_ns = UsualLatencies(context);
	BuildBacklogs(&context);
	blame.usual_ns.assign(context.usual_ns.begin(),
			      context.usual_ns.begin() + static_cast<ptrdiff_t>(run.ops.size()));

	FirstLook look = LookAtAll(context);
	const Matter matter = {blame.threshold_ns, look.bounds.SlowestPercent()};
	uint64_t blame_from = matter.least_ns();
	std::vector<Sheet> sheets(Workers(q.size()));
	ForRanges(q.size(), [&](size_t begin, size_t end, size_t w) {
		Spending scratch;
		for (size_t i = begin; i < end; i++) {
			if (q.Latency(i) < (IsError(q.status[i]) ? blame.threshold_ns : blame_from))
				continue;
			if (const Through *t = context.ThroughOf(i))
				BlameThrough(context, *t, i, matter, &scratch, &sheets[w]);
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
			if (MayBeMany(s))
				continue;
			SlowRequest r = {s.start_ns,
					 s.duration_ns,
					 s.start_ns,
					 static_cast<uint32_t>(i),
					 0,
					 static_cast<uint32_t>(sheets[0].parts.size()),
					 0,
					 0,
					 FT_STATUS_OK,
					 hop};
			CauseTimes direct = {};
			AddTimes(timeline, s.start_ns, s.start_ns + s.duration_ns, &direct);
			direct[Index(Cause::Network)] += direct[Index(Cause::Idle)];
			AddParts(direct, {}, hop, &sheets[0]);
			AddRequest(&r, &sheets[0]);
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
	*threshold = {};
	if (!text.empty() && text[0] == 'p')
		return parse_positive(text.c_str() + 1, 100, &threshold->percentile) &&
		       threshold->percentile < 100;
	return parse_duration(text.c_str(), TIME_NS | TIME_US | TIME_MS | TIME_S, 0, &threshold->ns) &&
	       threshold->ns > 0;
}

Blame BlameRun(const Run &run, const std::vector<Timeline> &timelines, const Threshold &threshold,
	       const Clients &clients, const Serving &serving)
{
	return run.requests.size() ? BlameRequests(run, timelines, threshold, clients, serving)
				   : BlameIterations(run, timelines, threshold);
}

} // namespace forktail

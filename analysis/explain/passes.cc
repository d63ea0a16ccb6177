// SPDX-License-Identifier: MIT
// Blames requests. docs/how-it-works/attribution.md has the rules; this file keeps them fast and small.
//
// A run has millions of requests. Few of them matter: the slow ones, and those that would be among the
// slowest percent without some stall. So a first look, a few nanoseconds per request, computes a lower bound
// of each request's latency without stalls. From that follows a latency below which no request can reach the
// tail. Only requests at or above it are blamed exactly, in the same pass if that latency can be estimated
// (passes.h). Everything reads the log by windows, and stores only what does not grow with it.
#include "analysis/passes.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "analysis/blame.h"
#include "analysis/run.h"
#include "analysis/timeline.h"
#include "common/text.h"
#include "passes.h"

namespace forktail::analysis
{

namespace
{

constexpr size_t kTogether = 4096;	    // sampled requests whose time is loaded at once
constexpr uint64_t kLeastBuckets = 1 << 18; // minimum per backlog, if there are many
constexpr size_t kLookedBack = 256;	    // requests ahead on a connection that one may have waited for
constexpr size_t kStep = 100'000;	    // requests blamed at a time

void FindHops(const std::vector<Timeline> &timelines, Context *context)
{
	context->hop_of_thread.assign(context->run.threads.size(), kNoHop);
	for (size_t i = timelines.size(); i-- > 0;)
		if (timelines[i].thread < context->run.threads.size())
			context->hop_of_thread[timelines[i].thread] = static_cast<uint16_t>(i);
	for (const Timeline &t : timelines)
		context->timelines.push_back(&t);
}

// Finds the servers of requests.
void FindServers(const std::vector<Timeline> &timelines, Context *context)
{
	static const Timeline no_timeline;
	const Run &run = context->run;
	const Serving &serving = context->serving;
	size_t first = std::min(timelines.size(), std::max<size_t>(run.servers.size(), 1));
	if (run.behind.empty() && serving.connections.empty())
		first = timelines.size();
	const std::set<uint32_t> clients = ClientsOfServers(run);
	auto add = [&](const Timeline &t, uint16_t hop) {
		const bool known = t.thread < run.threads.size();
		const bool awaits = known && clients.count(run.threads[t.thread].tgid);
		const bool holds =
		    known && serving.connections.empty() && AnswersByItself(run, run.threads[t.thread].tgid);
		context->servers.push_back({&t, {}, {}, hop, awaits, holds});
	};
	for (size_t s = 0; s < first; s++)
		add(timelines[s], HopOf(run, timelines, s));
	if (serving.connections.empty())
		return;
	context->server_of_hop.resize(timelines.size());
	for (size_t s = first; s-- > 0;)
		context->server_of_hop[s] = static_cast<uint16_t>(s);
	for (uint16_t hop : serving.more) {
		context->server_of_hop[hop] = static_cast<uint16_t>(context->servers.size());
		add(timelines[hop], hop);
	}
	add(no_timeline, kNoHop);
}

// Computes what depends on the current timelines.
void Derive(Context *context)
{
	context->stalled_idle.clear();
	for (Server &s : context->servers) {
		s.curve = BuildCurve(*s.timeline);
		for (const Timeline &client : context->clients.timelines)
			context->stalled_idle.push_back(FindStalledIdle(*s.timeline, client));
	}
	BuildRoutes(context);
}

// Finds the server of each request of the window.
void FindServedBy(Context *context)
{
	context->served_by.Truncate(0);
	if (context->server_of_hop.empty())
		return;
	const Requests &q = context->run.requests;
	uint16_t *served_by = context->served_by.Extend(q.size());
	for (size_t i = 0; i < q.size(); i++)
		served_by[i] =
		    static_cast<uint16_t>(context->ServerOfConnection(q.connection[i], q.sent_ns[i]));
}

// The passes over a log whose requests were counted.
class Passes
{
public:
	Passes(const Run &run, Log *log, LogFacts &facts, const std::vector<Timeline> &timelines,
	       const Clients &clients, const Serving &serving, const BlameLimits &limits,
	       const Stretches &stretches, const Earlier &earlier)
	    : log_(*log), facts_(facts), limits_(limits), stretches_(stretches),
	      earlier_(earlier), context_{run, serving, clients, OutagesOf(run)},
	      kept_(limits, facts.answered())
	{
		context_.outages.insert(context_.outages.end(), facts_.outages.begin(), facts_.outages.end());
		FindHops(timelines, &context_);
		FindServers(timelines, &context_);
		for (const std::string &op : run.ops)
			context_.held_rule.blocking.push_back(IsBlockingCommand(op));
		context_.held_rule.reads = std::ranges::all_of(context_.servers, &Server::holds);
		FindWays(timelines, &context_);
		if (!context_.way_ends.empty()) // a request ahead may be in the window before
			log_.KeepLead(run.connections.size() * kLookedBack);
	}

	Blame Make(const Threshold &threshold)
	{
		blame_.count = facts_.count;
		blame_.by_status = facts_.by_status;
		blame_.joined = facts_.joined;
		blame_.errors = facts_.count - facts_.answered();
		FindUsual();
		FindPercentilesAndBacklogs(threshold);
		kept_.SetThreshold(blame_.threshold_ns);
		BlameExactly(LookAtAll());
		kept_.Conclude(&look_.without, &blame_);
		CountServed(context_, served_, served_on_, &blame_);
		kept_.FillHops(&blame_);
		return std::move(blame_);
	}

private:
	const Requests &requests() const { return context_.run.requests; }

	// One pass over the run's stretches: the usual latencies, from the sampled requests, and the idle
	// times of servers.
	void FindUsual()
	{
		for (const Server &s : context_.servers)
			of_servers_.emplace_back(context_.run, BacklogsFrom(), s.timeline, nullptr,
						 BucketsEach());
		Usual usual(context_, facts_.first_due_ns);
		std::vector<SampledRequest> &sample = facts_.sample;
		SortNearly(sample.data(), sample.data() + sample.size(),
			   [](const SampledRequest &a, const SampledRequest &b) {
				   return a.arrived_ns < b.arrived_ns;
			   });
		auto next = sample.begin();
		std::vector<SampledRequest> long_ones; // begin before the stretch in which they end
		auto see = [&](uint64_t from_ns, uint64_t to_ns) {
			for (BacklogBuilder &b : of_servers_)
				b.AddIdle();
			usual.AddOwnCode(context_, std::max(from_ns, facts_.first_due_ns),
					 std::min(to_ns, facts_.last_end_ns));
			for (; next != sample.end() && next->arrived_ns < to_ns; ++next) {
				if (next->intended_ns >= from_ns)
					usual.Add(context_, *next);
				else
					long_ones.push_back(*next);
			}
		};
		CoverEarlier(see);
		stretches_.each(see);
		for (const SampledRequest &r : long_ones) {
			stretches_.cover(r.intended_ns, r.arrived_ns);
			usual.Add(context_, r);
		}
		sample = {};
		context_.usual_ns = usual.Latencies();
		usual.SetService(facts_.answered(), &context_);
		blame_.usual_ns.assign(context_.usual_ns.begin(),
				       context_.usual_ns.begin() +
					   static_cast<ptrdiff_t>(context_.run.ops.size()));
	}

	// Computes what is known about the window's requests besides their times. The slots need the windows
	// in order.
	void StartWindow(ConnectionSlots *slots)
	{
		FindServedBy(&context_);
		slots->Wait(context_.run, context_.held_rule, &context_.taken);
		FindInFront(&context_);
	}

	// Start of the records that a request due then needs: the last instant without a backlog.
	uint64_t Since(uint64_t due_ns) const
	{
		uint64_t since_ns = due_ns;
		for (const Server &s : context_.servers)
			since_ns = std::min(since_ns, s.backlog.Since(due_ns));
		for (const auto &path : context_.proxy_paths)
			if (path)
				since_ns = std::min(since_ns, path->backlog.Since(due_ns));
		return since_ns;
	}

	// The time of some requests of the window, from the first record that they need.
	struct Extent {
		uint64_t from_ns = UINT64_MAX, to_ns = 0;
	};
	Extent ExtentOf(size_t begin, size_t end) const
	{
		Extent e;
		for (size_t i = begin; i < end; i++) {
			e.from_ns = std::min(e.from_ns, requests().due_ns[i]);
			e.to_ns = std::max(e.to_ns, requests().end_ns[i]);
		}
		e.from_ns = Since(e.from_ns);
		return e;
	}

	// Calls see(begin, end) for parts of the window in order, with their records in memory. One window
	// may need more than a stretch can hold.
	template <typename See> void ForParts(See see)
	{
		constexpr size_t step = 1024;
		const size_t size = requests().size();
		for (size_t begin = requests().lead, end = begin; begin < size; begin = end) {
			// Requests ahead are examined too.
			end = std::min(size, begin + step);
			Extent part = ExtentOf(begin == requests().lead ? 0 : begin, end);
			uint64_t reach_ns = stretches_.reach(part.from_ns);
			while (end < size && part.to_ns <= reach_ns) {
				Extent more = ExtentOf(end, std::min(size, end + step));
				if (more.to_ns > reach_ns)
					break;
				if (more.from_ns < part.from_ns)
					reach_ns = stretches_.reach(more.from_ns);
				part = {std::min(part.from_ns, more.from_ns),
					std::max(part.to_ns, more.to_ns)};
				end = std::min(size, end + step);
			}
			if (stretches_.cover(part.from_ns, part.to_ns) || !derived_)
				Derive(&context_);
			derived_ = true;
			see(begin, end);
		}
	}

	void FindPercentilesAndBacklogs(const Threshold &threshold)
	{
		Percentiles latencies(facts_.latencies, facts_.latencies_ns,
				      threshold.percentile > 0 ? threshold.percentile : kUsualThreshold);
		Percentiles arrivals(facts_.arrivals, facts_.arrivals_ns, kUsualThreshold);
		auto add = [&](size_t i, uint64_t times) {
			latencies.Add(requests().Latency(i), times);
			if (!requests().arrival_ns.empty() && requests().arrival_ns[i])
				arrivals.Add(requests().arrival_ns[i] - requests().due_ns[i], times);
		};
		// Calls see(i, times) for each answered request of the window, or once for `times` equal
		// ones.
		auto each = [&](auto see) {
			for (size_t i = requests().lead, next; i < requests().size(); i = next) {
				next = context_.EndOfEqual(i, requests().size());
				if (!IsError(requests().status[i]))
					see(i, next - i);
			}
		};
		std::vector<std::unique_ptr<BacklogBuilder>> of_ways;
		ConnectionSlots slots(context_.run, facts_.last_use_of);
		HeldBuilder held(context_.run);
		auto add_window = [&](auto add_each) {
			StartWindow(&slots);
			NoteWays(&context_);
			StartBacklogs(&of_ways);
			each([&](size_t i, uint64_t times) {
				add_each(i, times);
				held.Add(requests().sent_ns[i], requests().Arrived(i), times);
				AddToBacklog(i, times, &of_servers_[context_.ServerIndex(i)]);
				if (!of_ways.empty())
					AddToBacklog(i, times, of_ways[context_.WayOf(i)].get());
			});
		};
		ForEarlier([&] { add_window([](size_t, uint64_t) {}); });
		ForWindows(&log_, [&] { add_window(add); });
		for (;;) {
			bool known = latencies.EndPass(), arrivals_known = arrivals.EndPass();
			if (known && arrivals_known)
				break;
			ForWindows(&log_, [&] { each(add); });
		}
		context_.held = held.Finish();
		blame_.latencies = latencies.Result();
		blame_.p99_range = RangeOf(facts_.latencies, 99);
		blame_.p99_9_range = RangeOf(facts_.latencies, 99.9);
		blame_.threshold_ns = threshold.ns ? threshold.ns : latencies.Further();
		blame_.arrivals = {facts_.arrivals.count, arrivals.Result(), facts_.unread_ns,
				   facts_.longest_unread_ns};
		auto add_idle = [&](uint64_t, uint64_t) {
			for (auto &b : of_ways)
				if (b)
					b->AddIdle();
		};
		if (!of_ways.empty()) {
			CoverEarlier(add_idle);
			stretches_.each(add_idle);
		}
		for (size_t s = 0; s < of_servers_.size(); s++)
			context_.servers[s].backlog = of_servers_[s].Finish();
		of_servers_.clear();
		for (size_t w = 0; w < of_ways.size(); w++)
			if (of_ways[w])
				context_.proxy_paths[w]->backlog = of_ways[w]->Finish();
	}
	uint64_t BacklogsFrom() const { return earlier_.log ? earlier_.from_ns : context_.run.start_ns; }
	// Calls see() with each window of earlier requests, if any.
	template <typename See> void ForEarlier(See see)
	{
		if (!earlier_.log)
			return;
		earlier_.log->Forget();
		ForWindows(earlier_.log, see);
		log_.Forget();
	}
	// Calls see() with what threads did in their time, a stretch at a time.
	template <typename See> void CoverEarlier(See see)
	{
		if (!earlier_.log)
			return;
		for (uint64_t from_ns = earlier_.from_ns, to_ns; from_ns < earlier_.to_ns; from_ns = to_ns) {
			to_ns = std::clamp(stretches_.reach(from_ns), from_ns + 1, earlier_.to_ns);
			stretches_.cover(from_ns, to_ns);
			see(from_ns, to_ns);
		}
	}
	uint64_t BucketsEach() const
	{
		return std::max(limits_.backlog_buckets /
				    std::max<size_t>(context_.servers.size(), context_.way_ends.size()),
				kLeastBuckets);
	}
	// For paths that requests took.
	void StartBacklogs(std::vector<std::unique_ptr<BacklogBuilder>> *of_ways)
	{
		of_ways->resize(context_.proxy_paths.size());
		for (size_t w = 0; w < of_ways->size(); w++)
			if (context_.proxy_paths[w] && !(*of_ways)[w])
				(*of_ways)[w] = std::make_unique<BacklogBuilder>(
				    context_.run, BacklogsFrom(),
				    context_.servers[w / context_.WaysOfServer()].timeline,
				    context_.timelines[context_.way_ends[w]], BucketsEach());
	}
	void AddToBacklog(size_t i, uint64_t times, BacklogBuilder *backlog)
	{
		if (backlog)
			backlog->Add(requests().due_ns[i], requests().Arrived(i),
				     context_.usual_ns[requests().op[i]], context_.Until(i),
				     context_.taken.empty() ? 0 : context_.taken.free_ns[i], times);
	}

	// True: what matters was blamed in the same pass.
	bool LookAtAll()
	{
		std::vector<FirstLook> workers(MaxWorkers());
		std::vector<Sheet> sheets(MaxWorkers());
		ConnectionSlots slots(context_.run, facts_.last_use_of);
		ForEarlier([&] { StartWindow(&slots); });
		served_.resize(context_.servers.size());
		served_on_.resize(context_.proxy_paths.size());
		uint64_t step = ProxyStep(log_.Count());
		speculative_ = SpeculativeBlame(limits_.kept, facts_.latencies, blame_.threshold_ns);
		Floor floor(facts_.latencies);
		// Blame through a proxy depends on more than a latency.
		const bool any_proxy = std::any_of(context_.proxy_paths.begin(), context_.proxy_paths.end(),
						   [](const auto &t) { return t != nullptr; });
		if (any_proxy)
			speculative_.GiveUp();
		else
			slow_taken_ = true;
		ForWindows(&log_, [&] {
			StartWindow(&slots);
			ForParts([&](size_t begin, size_t end) {
				LookAt(context_, begin, end, step, any_proxy ? 0 : floor.Of(workers),
				       &workers);
				CountCut(begin, end);
				if (!any_proxy)
					BlameRange(begin, end, speculative_.From(workers), UINT64_MAX,
						   &sheets, [&] { speculative_.Take(&sheets, &kept_); });
			});
			CountWhoServed();
		});
		for (const FirstLook &worker : workers)
			look_.Merge(worker);
		if (!floor.Covers(look_))
			LookAgain(step);
		matter_ = {blame_.threshold_ns, look_.bounds.SlowestPercent()};
		return speculative_.PassTo(matter_.least_ns(), &kept_);
	}

	// Examines all of them, whatever their latency.
	void LookAgain(uint64_t step)
	{
		std::vector<FirstLook> workers(MaxWorkers());
		ConnectionSlots slots(context_.run, facts_.last_use_of);
		ForEarlier([&] { StartWindow(&slots); });
		ForWindows(&log_, [&] {
			StartWindow(&slots);
			ForParts([&](size_t begin, size_t end) {
				LookAt(context_, begin, end, step, 0, &workers);
			});
		});
		look_ = {};
		for (const FirstLook &worker : workers)
			look_.Merge(worker);
	}

	void CountCut(size_t begin, size_t end)
	{
		const uint64_t from_ns = context_.run.loaded_from_ns;
		for (size_t i = begin; i < end && from_ns; i++)
			blame_.cut_requests += requests().due_ns[i] < from_ns;
	}

	void CountWhoServed()
	{
		if (context_.servers.size() == 1 && context_.proxy_paths.empty()) {
			served_[0] += requests().size() - requests().lead;
			return;
		}
		unserved_.resize(context_.run.connections.size());
		for (size_t i = requests().lead, next; i < requests().size(); i = next) {
			next = context_.EndOfEqual(i, requests().size());
			size_t server = context_.ServerIndex(i);
			served_[server] += next - i;
			if (context_.ProxyPathOf(i))
				served_on_[context_.WayOf(i)] += next - i;
			if (context_.server_of_hop.empty() || server + 1 < context_.servers.size())
				continue;
			blame_.unserved_requests += next - i;
			blame_.unserved_connections += !unserved_[requests().connection[i]];
			unserved_[requests().connection[i]] = true;
		}
	}

	// `along`: requests that matter were blamed in the first look.
	void BlameExactly(bool along)
	{
		if (!along)
			BlameThose(slow_taken_ ? blame_.threshold_ns : UINT64_MAX);
		while (kept_.Again())
			along ? speculative_.PassAgainTo(&kept_) : BlameThose(UINT64_MAX);
	}

	// Those that took from_ns or more, but less than below_ns. Calls take() whenever the sheets must be
	// emptied.
	template <typename Take>
	void BlameRange(size_t first, size_t last, uint64_t from_ns, uint64_t below_ns,
			std::vector<Sheet> *sheets, Take take)
	{
		const Requests &q = requests();
		auto blame = [&](size_t begin, size_t end, size_t w) {
			ProxyScratch scratch;
			Sheet *sheet = &(*sheets)[w];
			for (size_t i = begin, next; i < end; i = next) {
				next = i + 1;
				if (q.Latency(i) < (IsError(q.status[i]) ? blame_.threshold_ns : from_ns) ||
				    q.Latency(i) >= below_ns)
					continue;
				if (const ProxyPath *t = context_.ProxyPathOf(i)) {
					BlameProxyRequest(context_, *t, i, matter_, &scratch, sheet);
					continue;
				}
				BlameDirectly(context_, i, sheet);
				for (const size_t equal = context_.EndOfEqual(i, end); next < equal; next++)
					AddEqual(sheet);
			}
		};
		// In steps: all requests may be slow, and sheets are large.
		for (size_t at = first; at < last; at += kStep) {
			ForRanges(at, std::min(at + kStep, last), blame);
			take();
		}
	}

	void BlameThose(uint64_t below_ns)
	{
		const uint64_t from_ns = matter_.least_ns();
		ConnectionSlots slots(context_.run, facts_.last_use_of);
		std::vector<Sheet> sheets(MaxWorkers());
		ForEarlier([&] { StartWindow(&slots); });
		ForWindows(&log_, [&] {
			StartWindow(&slots);
			ForParts([&](size_t begin, size_t end) {
				BlameRange(begin, end, from_ns, below_ns, &sheets, [&] {
					for (Sheet &sheet : sheets)
						kept_.Take(&sheet);
				});
			});
		});
	}

	Log &log_;
	LogFacts &facts_;
	const BlameLimits limits_;
	const Stretches &stretches_;
	const Earlier earlier_;
	bool derived_ = false;
	bool slow_taken_ = false; // slow requests were blamed in the first look
	Context context_;
	FirstLook look_;
	Matter matter_ = {};
	std::vector<BacklogBuilder> of_servers_;   // while they are built
	std::vector<uint64_t> served_, served_on_; // requests by server, and by path
	std::vector<bool> unserved_;		   // by connection
	SpeculativeBlame speculative_;
	SlowestRequests kept_;
	Blame blame_;
};

} // namespace

bool ParseThreshold(const std::string &text, Threshold *threshold, std::string *error)
{
	*error = "--slow takes a duration or a percentile (1ms, 500us, 2s, p99, p99.9), not '" + text + "'";
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
	if (run.requests.size() == 0)
		return BlameIterations(run, timelines, threshold, {}, {});
	WholeLog log(run);
	LogFacts facts = CountRequests(run, &log);
	return BlameLog(run, &log, std::move(facts), timelines, threshold, clients, serving, {}, {});
}

Blame BlameLog(const Run &run, Log *log, LogFacts facts, const std::vector<Timeline> &timelines,
	       const Threshold &threshold, const Clients &clients, const Serving &serving,
	       const BlameLimits &limits, const Stretches &stretches, const Earlier &earlier)
{
	return Passes(run, log, facts, timelines, clients, serving, limits, stretches, earlier)
	    .Make(threshold);
}

// Blame without a log: event-loop iterations replace requests.

Blame BlameIterations(const Run &run, const std::vector<Timeline> &timelines, const Threshold &threshold,
		      const BlameLimits &limits, const Stretches &stretches)
{
	// Calls see(hop, timeline, iteration's index) for each iteration of a hop.
	auto each = [&](auto see) {
		stretches.each([&](uint64_t from_ns, uint64_t to_ns) {
			for (const Timeline &t : timelines) {
				if (t.thread >= run.threads.size())
					continue;
				uint16_t hop =
				    HopOf(run, timelines, static_cast<size_t>(&t - timelines.data()));
				const Thread &thread = run.threads[t.thread];
				for (size_t i = thread.first_iteration;
				     i < thread.first_iteration + thread.iteration_count; i++)
					if (run.iterations[i].start_ns >= from_ns &&
					    run.iterations[i].start_ns < to_ns)
						see(hop, t, i);
			}
		});
	};
	Blame blame;
	blame.from_iterations = true;
	LogHistogram durations;
	unsigned __int128 sum = 0;
	std::vector<uint64_t> counts(timelines.size());
	auto number_of = [&](const Timeline &t) { return static_cast<size_t>(&t - timelines.data()); };
	each([&](uint16_t hop, const Timeline &t, size_t i) {
		CountServed(hop, 1, &blame);
		counts[number_of(t)]++;
		if (MayBeMany(run.iterations[i]))
			return;
		durations.Add(run.iterations[i].duration_ns);
		sum += run.iterations[i].duration_ns;
	});
	Percentiles percentiles(durations, sum,
				threshold.percentile > 0 ? threshold.percentile : kUsualThreshold);
	do {
		each([&](uint16_t, const Timeline &, size_t i) {
			if (!MayBeMany(run.iterations[i]))
				percentiles.Add(run.iterations[i].duration_ns);
		});
	} while (!percentiles.EndPass());
	blame.count = durations.count;
	blame.by_status[FT_STATUS_OK] = durations.count;
	blame.latencies = percentiles.Result();
	blame.threshold_ns = threshold.ns ? threshold.ns : percentiles.Further();
	SlowestRequests kept(limits, blame.count);
	kept.SetThreshold(blame.threshold_ns);
	Sheet sheet;
	do {
		// Thread by thread, as in a run that is read at once: numbers do not depend on the stretches.
		std::vector<uint64_t> next(timelines.size());
		std::exclusive_scan(counts.begin(), counts.end(), next.begin(), uint64_t{0});
		each([&](uint16_t hop, const Timeline &t, size_t i) {
			const ft_span &s = run.iterations[i];
			const uint64_t number = next[number_of(t)]++;
			if (MayBeMany(s))
				return;
			SlowRequest r = {s.start_ns, s.duration_ns, s.start_ns, number, 0, 0, 0,
					 0,	     FT_STATUS_OK,  hop};
			CauseTimes direct = {};
			AddTimes(t, s.start_ns, s.start_ns + s.duration_ns, &direct);
			direct[Index(Cause::Network)] += direct[Index(Cause::Idle)];
			AddParts(direct, {}, hop, &sheet);
			AddRequest(&r, &sheet);
			kept.Take(&sheet);
		});
	} while (kept.Again());
	kept.Conclude(nullptr, &blame);
	kept.FillHops(&blame);
	return blame;
}

// Each worker counts its range of a window. Results that depend on the order of requests are joined in that
// order.

namespace
{

constexpr uint64_t kSample = 1'000'000;

// The connections to a proxy.
std::vector<bool> ThroughProxy(const Run &run)
{
	std::vector<bool> through(run.connections.size());
	for (const Load &load : run.loads)
		for (uint32_t c = 0; load.behind && c < load.connection_count; c++)
			if (load.first_connection + c < through.size())
				through[load.first_connection + c] = true;
	return through;
}

void CountArrival(const Requests &q, size_t i, uint64_t times, LogFacts *facts)
{
	uint64_t ns = q.arrival_ns[i] - q.due_ns[i];
	facts->arrivals.Add(ns, times);
	facts->arrivals_ns += ns * times;
	facts->unread_ns += q.Unread(i) * times;
	facts->longest_unread_ns = std::max(facts->longest_unread_ns, q.Unread(i));
}

// A request with one of these statuses was answered by a server.
bool IsAnswered(uint8_t status)
{
	return status <= FT_STATUS_ERROR_REPLY || status == FT_STATUS_WRONG;
}

void CountOperation(const Requests &q, size_t i, uint64_t times, OperationCount *count)
{
	count->requests += times;
	const uint64_t read_ns = q.read_ns.empty() ? 0 : q.read_ns[i],
		       answered_ns = q.answered_ns.empty() ? q.end_ns[i] : q.answered_ns[i];
	if (!read_ns || answered_ns < read_ns)
		return;
	count->served += times;
	count->service_ns += (answered_ns - read_ns) * times;
}

void CountRange(const Run &run, const std::vector<bool> &through, size_t begin, size_t end, uint64_t step,
		const TimeSpan &period, LogFacts *facts)
{
	const Requests &q = run.requests;
	facts->first_due_of.resize(run.connections.size(), UINT64_MAX);
	facts->last_use_of.resize(run.connections.size());
	size_t sampled = begin + (step - q.Number(begin) % step) % step; // the next one of the sample
	for (size_t i = begin, next; i < end; i = next) {
		next = q.EndOfEqual(i, end);
		const uint64_t times = next - i;
		const size_t first_sampled = sampled;
		while (sampled < next)
			sampled += step;
		uint32_t c = q.connection[i];
		facts->by_status[q.status[i]] += times;
		facts->first_due_ns = std::min(facts->first_due_ns, q.due_ns[i]);
		facts->last_due_ns = std::max(facts->last_due_ns, q.due_ns[i]);
		facts->last_end_ns = std::max(facts->last_end_ns, q.end_ns[i]);
		facts->curve.At(q.due_ns[i]).due += times;
		LoadCounts &ended = facts->curve.At(q.end_ns[i]);
		(IsAnswered(q.status[i]) ? ended.answered : ended.failed) += times;
		if (facts->first_due_of[c] == UINT64_MAX)
			facts->first_due_of[c] = q.due_ns[i];
		if (q.status[i] != FT_STATUS_UNSENT)
			facts->last_use_of[c] = {q.sent_ns[i], q.Arrived(i)};
		facts->behind |= q.Behind(i) != 0;
		facts->joined += q.Joined(i) ? times : 0;
		if (q.Behind(i) == 0 && through[c] && q.status[i] != FT_STATUS_UNSENT)
			facts->behind_unknown += times;
		if (q.end_ns[i] > period.since_ns && q.end_ns[i] <= period.until_ns &&
		    IsAnswered(q.status[i]))
			CountOperation(q, i, times, &facts->by_op[q.op[i]]);
		if (IsError(q.status[i]))
			continue;
		uint64_t latency = q.Latency(i);
		facts->latencies.Add(latency, times);
		facts->latencies_ns += latency * times;
		facts->peaks.Add(q.due_ns[i], latency);
		if (!q.arrival_ns.empty() && q.arrival_ns[i])
			CountArrival(q, i, times, facts);
		for (size_t n = first_sampled; n < next; n += step)
			facts->sample.push_back({q.due_ns[i], q.sent_ns[i], q.Arrived(i), latency, c, q.op[i],
						 static_cast<uint8_t>(q.Behind(i))});
	}
	facts->count += end - begin;
}

void MergeOrdered(LogFacts *worker, LogFacts *all)
{
	all->first_due_of.resize(std::max(all->first_due_of.size(), worker->first_due_of.size()), UINT64_MAX);
	for (size_t c = 0; c < worker->first_due_of.size(); c++)
		if (all->first_due_of[c] == UINT64_MAX)
			all->first_due_of[c] = worker->first_due_of[c];
	all->last_use_of.resize(std::max(all->last_use_of.size(), worker->last_use_of.size()));
	for (size_t c = 0; c < worker->last_use_of.size(); c++)
		if (worker->last_use_of[c].arrived_ns)
			all->last_use_of[c] = std::exchange(worker->last_use_of[c], {});
	all->sample.insert(all->sample.end(), worker->sample.begin(), worker->sample.end());
	worker->sample.clear();
}

void MergeSums(const LogFacts &worker, LogFacts *all)
{
	all->count += worker.count;
	for (size_t s = 0; s < all->by_status.size(); s++)
		all->by_status[s] += worker.by_status[s];
	all->first_due_ns = std::min(all->first_due_ns, worker.first_due_ns);
	all->last_due_ns = std::max(all->last_due_ns, worker.last_due_ns);
	all->last_end_ns = std::max(all->last_end_ns, worker.last_end_ns);
	all->latencies.Merge(worker.latencies);
	all->latencies_ns += worker.latencies_ns;
	all->peaks.Merge(worker.peaks);
	all->curve.Merge(worker.curve);
	all->behind_unknown += worker.behind_unknown;
	all->behind |= worker.behind;
	all->joined += worker.joined;
	for (size_t op = 0; op < all->by_op.size(); op++)
		all->by_op[op].Add(worker.by_op[op]);
	all->arrivals.Merge(worker.arrivals);
	all->arrivals_ns += worker.arrivals_ns;
	all->unread_ns += worker.unread_ns;
	all->longest_unread_ns = std::max(all->longest_unread_ns, worker.longest_unread_ns);
}

} // namespace

void AddEarlier(LogFacts earlier, LogFacts *facts)
{
	MergeOrdered(facts, &earlier);
	facts->first_due_of = std::move(earlier.first_due_of);
	facts->last_use_of = std::move(earlier.last_use_of);
	facts->sample = std::move(earlier.sample);
}

LogFacts CountRequests(const Run &run, Log *log, const TimeSpan &period)
{
	LogFacts all;
	std::vector<LogFacts> workers(MaxWorkers());
	uint64_t step = log->Count() / kSample + 1;
	all.sample.reserve(std::min(log->Count() / step + 1, kSample));
	ForWindows(log, [&] {
		const std::vector<bool> through = ThroughProxy(run);
		const Requests &q = run.requests;
		ForRanges(q.lead, q.size(), [&](size_t begin, size_t end, size_t w) {
			CountRange(run, through, begin, end, step, period, &workers[w]);
		});
		for (size_t w = 0; w < Workers(q.size() - q.lead); w++)
			MergeOrdered(&workers[w], &all);
	});
	for (const LogFacts &worker : workers)
		MergeSums(worker, &all);
	return all;
}

} // namespace forktail::analysis

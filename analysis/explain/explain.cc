// SPDX-License-Identifier: MIT
// Makes an explanation from a run: opens it, then runs the passes of kPasses, below, in their order.
#include "analysis/explain.h"

#include <algorithm>
#include <span>

#include "analysis/passes.h"
#include "analysis/timeline.h"
#include "common/format.h"
#include "scene.h"

namespace forktail::analysis
{

namespace
{

constexpr uint64_t kSlowIterationNs = 1'000'000;
// A cause with this share of the slow requests' time is joined with another one that it is a part of.
constexpr double kPartOfEvent = 0.05;
// Evidence is made for this many episodes, because an overloaded run can have hundreds of thousands.
constexpr size_t kEvidenceEpisodes = 1000;

// How memory is divided: windows of the log, the stretch of threads' records, backlogs by time, and slow
// requests.
struct Memory {
	size_t window; // requests
	uint64_t stretch;
	BlameLimits limits;
};
Memory Divide(uint64_t bytes, bool page)
{
	// For histograms, the program itself and small data; and for composing a report page.
	const uint64_t always = (page ? 120 : 40) << 20;
	bytes = bytes > 2 * always ? bytes - always : bytes / (page ? 4 : 2);
	constexpr uint64_t request = 134; // twice: one window is read ahead
	constexpr uint64_t kept = 384;	  // with its parts, its episode and memory for sorting
	constexpr uint64_t bucket = 17;
	return {std::max<size_t>(bytes / 7 / request, FT_REQUEST_BLOCK),
		bytes / 4,
		{std::max<size_t>(bytes / 4 / kept, 1000),
		 std::clamp<uint64_t>(bytes / 5 / bucket, 1 << 10, 1 << 22)}};
}

// Progress (0..1) after counting the requests, after reading or scanning the threads' records, and after each
// following pass: over the log for percentiles, a first look and blame. With several stretches, passes for
// accounts and for usual iteration lengths come first.
constexpr double kProgressCounted = 0.2, kProgressScanned = 0.3;
const std::vector<double> kPlan = {0.45, 0.7, 0.95};
const std::vector<double> kPlanInStretches = {0.37, 0.44, 0.56, 0.75, 0.95};

// Sets how stretches of a run are loaded: the source reads them, then their timelines are made. Passes over
// requests also need the timelines' sums.
void UseStretches(Reading *r)
{
	auto cover = [r](uint64_t from_ns, uint64_t to_ns) {
		bool changed = r->source->Cover(from_ns, to_ns, &r->run);
		if (changed)
			MakeTimelines(r);
		return changed;
	};
	r->stretches.cover = [r, cover](uint64_t from_ns, uint64_t to_ns) {
		bool changed = cover(from_ns, to_ns);
		for (Timeline &t : r->timelines)
			SumUp(&t);
		return changed;
	};
	r->stretches.reach = [r](uint64_t from_ns) { return r->source->Reach(from_ns); };
	r->stretches.each = [r, cover](const auto &see) {
		const std::vector<RunSource::Stretch> &all = r->source->stretches();
		if (all.size() > 1)
			r->progress.Begin();
		for (const RunSource::Stretch &s : all) {
			if (all.size() > 1)
				r->progress.At(static_cast<uint64_t>(&s - all.data()), all.size());
			cover(s.from_ns, s.to_ns);
			see(s.from_ns, s.to_ns);
		}
	};
}

// Restricts the run to the requested part. False: *error and *status are set.
bool TakePart(const PartAsked &asked, Reading *r, TimeSpan *whole, Explanation *e, std::string *error,
	      int *status)
{
	e->in_part = asked.any();
	if (!e->in_part)
		return true;
	*whole = r->source->Span(&r->run);
	e->zero_ns = whole->since_ns;
	if (int why = FindPart(asked, r->run, whole->since_ns, whole->until_ns, &e->part, error)) {
		*status = why;
		return false;
	}
	r->source->Restrict(e->part);
	return true;
}

// Threads' records of a part are explained until its last request was answered.
void BoundToPart(const LogFacts &facts, const TimeSpan &whole, Reading *r, Explanation *e)
{
	if (!e->in_part)
		return;
	uint64_t from_ns = std::max(e->part.since_ns, whole.since_ns),
		 to_ns = std::max(std::min(e->part.until_ns, whole.until_ns), facts.last_end_ns);
	r->source->Bound(from_ns, to_ns + 1);
	r->run.start_ns = from_ns;
	r->run.end_ns = to_ns;
	e->notes.push_back("only requests due from " + common::FormatOffset(from_ns, e->zero_ns) + " to " +
			   common::FormatOffset(std::min(e->part.until_ns, whole.until_ns), e->zero_ns) +
			   " are explained, with what threads did in that time: " +
			   SpanText(r->run, whole.since_ns, whole.until_ns));
}

bool OpenRun(const std::string &path, bool scan, const ExplainOptions &options, LogFacts *facts, Reading *r,
	     Explanation *e, std::string *error, int *status)
{
	const Memory memory = Divide(options.memory_bytes, options.page);
	*status = 3;
	TimeSpan whole; // from the first request to the last answer
	r->run = Run();
	r->log.reset();
	r->log_before.reset();
	r->source = std::make_unique<RunSource>();
	r->source->OnProgress(&r->progress);
	if (!r->source->Open(path, scan, &r->run, error, options.part))
		return false;
	if (!TakePart(options.part, r, &whole, e, error, status))
		return false;
	// A kernel log has more columns; one that is joined is read beside the load generator's.
	const size_t window = r->run.kernel_log_joined ? memory.window / 3
			      : SeenInKernel(r->run)   ? memory.window * 2 / 3
						       : memory.window;
	std::unique_ptr<LogReader> log = r->source->OpenLog(window, &r->run);
	log->OnProgress(&r->progress);
	r->log = std::move(log);
	r->progress.Plan({kProgressCounted, kProgressScanned});
	*facts = CountRequests(r->run, r->log.get(), CommandCountsSpan(r->run));
	r->log_before = r->source->OpenLogBefore(window, &r->run);
	if (r->log_before && facts->count) {
		AddEarlier(CountRequests(r->run, r->log_before.get()), facts);
		r->log->Forget();
	}
	r->source->OpenServers(memory.stretch, &r->run);
	if (!scan && r->source->Misled())
		return OpenRun(path, true, options, facts, r, e, error, status);
	if (e->in_part && r->source->has_log() && !facts->count) {
		*error = "no request was due in that time in " + r->run.path + ": " +
			 SpanText(r->run, whole.since_ns, whole.until_ns);
		return false;
	}
	if (facts->count)
		ExtendRun(facts->first_due_ns, facts->last_end_ns, &r->run);
	BoundToPart(*facts, whole, r, e);
	r->source->Finish(&r->run);
	return true;
}

// On-CPU time by thread, added up stretch by stretch.
class OwnCodes
{
public:
	// `activities`: of the loaded samples, at each Add().
	OwnCodes(const Activities &activities, Explanation *e) : activities_(activities), e_(*e)
	{
		for (size_t t = 0; t < e_.run.threads.size(); t++)
			counts_.emplace_back(e_.run, activities_);
	}
	void Add(uint64_t from_ns, uint64_t to_ns)
	{
		for (size_t t = 0; t < counts_.size(); t++)
			counts_[t].Add(e_.run.threads[t], from_ns, to_ns);
	}
	// Requires the serving threads and the accounts.
	void Finish()
	{
		OwnCodeCount all(e_.run, activities_);
		uint64_t all_ns = 0;
		for (size_t t = 0; t < counts_.size(); t++) {
			uint64_t own_ns = e_.accounts[t].by_cause[Index(Cause::ServerBusy)];
			e_.own_codes.push_back(counts_[t].Result(own_ns));
			if (std::find(e_.serving.begin(), e_.serving.end(), static_cast<int>(t)) ==
			    e_.serving.end())
				continue;
			all.Add(counts_[t]);
			all_ns += own_ns;
		}
		e_.own_code = all.Result(all_ns);
	}

private:
	const Activities &activities_;
	Explanation &e_;
	std::vector<OwnCodeCount> counts_;
};

// What the passes share: the run that they read, the explanation that they fill, and what a pass leaves to
// later ones.
struct Work {
	const ExplainOptions &options;
	Reading &reading;
	Explanation &e;
	LogFacts facts;
	BlameLimits limits;
	const bool requests = facts.count > 0; // else event-loop iterations are explained
	RequestGroups groups = RequestGroups();
	Activities activities = {}; // of the loaded CPU samples
	OwnCodes own_codes = OwnCodes(activities, &e);
	Accounts accounts = {};
	SlowLog slow_log = SlowLog(reading.run);
	SnapshotFinder snapshots = SnapshotFinder(reading.run);
	std::vector<uint32_t> processes = {}; // per Run::servers the process; 0: unknown
	std::set<Cause> own_sends = {};	      // causes that were soft interrupts of the server's own sends
	CpuTimes in_overload = CpuTimes({0, 0});
	Serving by_thread = {};
	size_t notes_of_servers = 0; // this many notes are on serving threads
	std::string error = {};	     // one sentence: nothing can be explained
};

// Counts requests by client and command, which reads the log once more, and sets what is called for slow
// requests.
void CountGroups(Work *w)
{
	const Run &run = w->reading.run;
	const bool wanted = w->requests && (w->options.groups || SeenInKernel(run));
	if (wanted)
		w->groups.Count(run, w->reading.log.get(), w->options.groups);
	if (wanted || w->options.tell || !w->snapshots.empty())
		w->limits.tell = [w, &run, wanted](const SlowRequest &request, const Part *parts) {
			if (w->options.tell)
				w->options.tell(run, request, parts);
			if (wanted)
				w->groups.AddSlow(run, request, parts);
			w->snapshots.AddSlow(run, request, parts, w->processes);
		};
}

void DetectOverload(Work *w)
{
	w->e.overload = FindOverload(w->reading.run, w->facts);
	if (w->e.overload)
		w->in_overload = CpuTimes(w->e.overload->period);
}

// Whether the server's own counts are of all requests, and of the time that is explained. Through a proxy
// INFO is of the proxy or of one of its servers.
bool ComparesCounts(const Explanation &e)
{
	return e.run.servers.size() == 1 && e.run.behind.empty() && !e.in_part;
}

// The account of each thread over the whole run, and its CPU time during an overload.
void AccountThreads(Work *w)
{
	Reading &r = w->reading;
	Explanation &e = w->e;
	r.progress.Plan(r.source->stretches().size() > 1 ? kPlanInStretches : kPlan);
	std::string why;
	if (ComparesCounts(e))
		e.server_threads = ServerThreadsOf(r.run, ProcessOfServer(r.run, 0, &why));
	CpuTimes cpu(e.server_threads.period);
	r.stretches.each([&](uint64_t from_ns, uint64_t to_ns) {
		w->activities = ActivitiesOf(r.run);
		w->accounts.Add(r.run, from_ns, to_ns);
		w->own_codes.Add(from_ns, to_ns);
		w->slow_log.Add(r.run, w->activities, from_ns, to_ns);
		w->snapshots.Add(r.run, from_ns, to_ns);
		if (!e.server_threads.threads.empty())
			cpu.Add(r.run, from_ns, to_ns);
		if (e.overload)
			w->in_overload.Add(r.run, from_ns, to_ns);
	});
	AddCpuTimes(cpu, &e.server_threads);
	for (size_t t = 0; t < r.run.threads.size(); t++) {
		r.run.threads[t].usual_turn_ns = w->accounts.UsualTurnNs(t);
		r.run.threads[t].counted = w->accounts.CountedOf(t);
	}
	e.accounts = w->accounts.Result(r.run);
	if (e.in_part)
		for (Account &a : e.accounts) {
			const Thread &t = r.run.threads[a.thread];
			uint64_t from_ns = std::max(t.start_ns, r.run.start_ns),
				 to_ns = std::min(t.end_ns, r.run.end_ns);
			a.wall_ns = to_ns - std::min(from_ns, to_ns);
		}
}

// The timelines without a request log: every thread with event-loop iterations. Child processes (for example
// of a snapshot) and load generators serve no requests.
void FindLoops(const Accounts &accounts, Reading *r, Explanation *e)
{
	for (size_t i = 0; i < r->run.threads.size(); i++) {
		const Thread &t = r->run.threads[i];
		if (accounts.Turns(i) == 0 || (t.flags & (FT_THREAD_CHILD | FT_THREAD_CLIENT)))
			continue;
		e->serving.push_back(static_cast<int>(i));
		r->timelines.emplace_back();
		r->timelines.back().thread = static_cast<uint32_t>(i);
	}
	MakeTimelines(r);
}

std::string NothingToExplain(const Run &run)
{
	if (run.threads.empty())
		return run.path + " holds no requests and no server threads: there is nothing to explain";
	return run.path + " holds no requests, and no event-loop iteration of the recorded server took " +
	       common::FormatDuration(run.min_span_ns) + " or more: there is nothing to explain";
}

void FindServing(Work *w)
{
	Reading &r = w->reading;
	if (w->requests)
		w->by_thread = FindServers(w->facts, w->accounts, &r, &w->e);
	else
		FindLoops(w->accounts, &r, &w->e);
	w->e.hop_threads = HopThreads(r.timelines);
	if (!w->requests && r.timelines.empty())
		w->error = NothingToExplain(r.run);
}

void FindServerCounts(Work *w)
{
	Explanation *e = &w->e;
	w->notes_of_servers = e->notes.size();
	if (e->run.servers.size() == 1 && e->run.behind.empty())
		if (const auto counted = ServerCommandsOf(e->run, {}))
			for (const ServerCommand &c : counted->commands)
				if (c.name == "client|pause" || c.name == "failover")
					e->pauses[c.name == "failover" ? "FAILOVER" : "CLIENT PAUSE"] +=
					    c.calls;
	if (!ComparesCounts(*e))
		return;
	e->server_count = ServerCountOf(e->run);
	e->server_commands = ServerCommandsOf(e->run, w->facts.by_op);
}

void FindMeasured(Work *w)
{
	const LogFacts &facts = w->facts;
	Explanation *e = &w->e;
	uint64_t first = facts.count ? facts.first_due_ns : e->run.start_ns,
		 last = facts.count ? facts.last_end_ns : e->run.end_ns;
	e->first_ns = first;
	e->peaks = facts.peaks;
	e->measured_ns = last - first;
	if (!e->in_part)
		e->zero_ns = first;
}

// Time of requests before or after the recording of their server is unattributed: note the bounds.
void NoteCoverage(Work *w)
{
	Explanation *e = &w->e;
	if (!w->requests)
		return;
	auto note = [&](const std::string &text) { // once for several servers
		if (std::find(e->notes.begin(), e->notes.end(), text) == e->notes.end())
			e->notes.push_back(text);
	};
	for (uint32_t t : e->hop_threads) {
		if (t >= e->run.threads.size())
			continue;
		const Thread &thread = e->run.threads[t];
		if (thread.end_ns <= thread.start_ns)
			continue;
		uint64_t last = e->first_ns + e->measured_ns;
		if (thread.start_ns > e->first_ns)
			note("the server was recorded from " +
			     common::FormatOffset(thread.start_ns, e->zero_ns) +
			     " on: the time of earlier requests is unattributed");
		if (thread.end_ns < last)
			note("the server was recorded until " +
			     common::FormatOffset(thread.end_ns, e->zero_ns) +
			     " only: the time of later requests is unattributed");
	}
}

// At a low rate the median is higher than at a high one if the CPU was idle before most requests: it wakes up
// late, and its caches are cold. The requests of one run show it, which came after different pauses.
void NoteIdleCpu(Work *w)
{
	constexpr uint64_t long_ns = 1'000'000, short_ns = 100'000, fewest = 100;
	constexpr double mostly_idle = 0.8, slower = 1.25;
	Explanation *e = &w->e;
	if (!w->requests || e->serving.size() != 1 || e->serving[0] < 0)
		return;
	const Account &account = e->accounts[static_cast<size_t>(e->serving[0])];
	if (static_cast<double>(account.by_cause[Index(Cause::Idle)]) <
	    mostly_idle * static_cast<double>(account.wall_ns))
		return;
	LogHistogram after_pause, soon;
	uint64_t answered_ns = 0, all = 0;
	const Requests &q = e->run.requests;
	for (w->reading.log->Rewind(); w->reading.log->Next();)
		for (size_t i = q.lead; i < q.size(); i++) {
			const uint64_t pause_ns = q.sent_ns[i] - std::min(q.sent_ns[i], answered_ns);
			if (pause_ns >= long_ns && answered_ns)
				after_pause.Add(q.end_ns[i] - q.sent_ns[i]);
			else if (pause_ns && pause_ns <= short_ns)
				soon.Add(q.end_ns[i] - q.sent_ns[i]);
			answered_ns = std::max(answered_ns, q.end_ns[i]);
			all++;
		}
	const uint64_t pause_ns = after_pause.PercentileFloor(50), soon_ns = soon.PercentileFloor(50);
	if (soon.count < fewest || after_pause.count * 2 < all ||
	    static_cast<double>(pause_ns) < slower * static_cast<double>(soon_ns))
		return;
	e->notes.push_back("requests after a pause of " + common::FormatDuration(long_ns) + " or more took " +
			   common::FormatDuration(pause_ns) + " in the median, requests within " +
			   common::FormatDuration(short_ns) + " of the answer before took " +
			   common::FormatDuration(soon_ns) +
			   ": idle CPUs of the server or the client wake up late");
}

// The recorder sees less of an event loop over io_uring than of one over epoll.
void NoteIoUring(Work *w)
{
	Explanation *e = &w->e;
	for (const Target &target : e->run.targets)
		if (target.io_uring)
			e->notes.push_back(target.comm + " (" + std::to_string(target.pid) +
					   ") uses io_uring: a thread that waits in io_uring_enter counts as "
					   "idle, whatever it waits for, and the serving threads of "
					   "connections are unknown");
}

void FindLoadThreads(Work *w)
{
	w->reading.clients = FindClients(w->reading.run, w->facts.first_due_of);
	if (w->e.overload)
		FindLimit(w->e.serving, w->reading.clients, w->in_overload, &*w->e.overload);
}

void FindOutages(Work *w)
{
	if (w->requests)
		w->e.server_ends = FindServerEnds(w->reading.run, w->reading.log.get());
	w->facts.outages = OutagesOf(w->reading.run, w->e.server_ends);
}

// Reads the log once more if there are snapshots: which requests were due during each.
void CountSnapshots(Work *w)
{
	const Run &run = w->reading.run;
	if (w->snapshots.empty() || !w->requests)
		return;
	std::string why;
	for (size_t server = 0; server < run.servers.size(); server++)
		w->processes.push_back(ProcessOfServer(run, static_cast<int>(server), &why));
	w->snapshots.Count(run, w->reading.log.get(), w->processes);
}

void FinishSnapshots(Work *w)
{
	w->e.snapshots = w->snapshots.Result(w->reading.run);
	AddCopiedSeries(w->e.snapshots, &w->reading.run);
}

void BlameSlow(Work *w)
{
	Reading &r = w->reading;
	Threshold slow = w->options.slow;
	if (!w->requests && !slow.ns && slow.percentile <= 0)
		slow.ns = kSlowIterationNs;
	const Earlier earlier = {r.log_before.get(), r.source->BeforePart(), w->e.part.since_ns};
	w->e.blame = w->requests ? BlameLog(r.run, r.log.get(), std::move(w->facts), r.timelines, slow,
					    r.clients, w->by_thread, w->limits, r.stretches, earlier)
				 : BlameIterations(r.run, r.timelines, slow, w->limits, r.stretches);
	for (size_t by = 0; by < kGroupings; by++)
		w->e.groups[by] = w->groups.Result(r.run, static_cast<GroupBy>(by));
}

void FindPeers(Work *w)
{
	for (const auto &[pid, peers] : UnrecordedPeers(w->reading.run))
		w->e.unrecorded_peers.insert(peers.begin(), peers.end());
}

// Inserted after the notes on serving threads.
void NoteUnknownThreads(Work *w)
{
	Explanation *e = &w->e;
	const Blame &b = e->blame;
	if (b.unserved_requests)
		e->notes.insert(e->notes.begin() + static_cast<ptrdiff_t>(w->notes_of_servers),
				"serving thread unknown for " +
				    common::Plural(b.unserved_requests, "request", "requests") + " on " +
				    common::Plural(b.unserved_connections, "connection", "connections") +
				    ": their time is unattributed");
}

// Notes on slow requests that did not fit into memory: too many, or too long.
void NoteLimits(Work *w)
{
	Explanation *e = &w->e;
	if (e->blame.cut_requests)
		e->notes.push_back(
		    "the first part of the time of " +
		    common::Plural(e->blame.cut_requests, "request", "requests") +
		    " is unattributed: they took too long to fit into memory (raise --memory)");
	if (uint64_t left = e->blame.slow_count - e->blame.slow.size())
		e->notes.push_back("only the " + common::FormatCount(e->blame.slow.size()) + " slowest of " +
				   common::Plural(e->blame.slow_count, "slow request", "slow requests") +
				   ", those of " + common::FormatDuration(e->blame.kept_from_ns) +
				   " or more, are grouped into episodes; the other " +
				   common::FormatCount(left) +
				   " are in all sums and percentiles (raise --memory)");
}

void NoteKernelLog(Work *w)
{
	Explanation *e = &w->e;
	if (!e->run.kernel_log_joined)
		return;
	const bool all = e->blame.joined == e->blame.count;
	e->notes.push_back("the server's kernel saw " +
			   (all ? "all of the load generator's requests"
				: common::FormatCount(e->blame.joined) + " of the load generator's " +
				      common::Plural(e->blame.count, "request", "requests")) +
			   "; requests of others that it saw are left out");
}

void NoteEnds(Work *w)
{
	Explanation *e = &w->e;
	for (const std::string &note : EndNotes(*e))
		e->notes.push_back(note);
	if (const std::string note = OverloadNote(*e); !note.empty())
		e->notes.push_back(note);
}

// Joins episodes with short gaps into time spans, in order. Records between two spans need not be read for
// evidence.
std::vector<TimeSpan> EvidenceSpans(const std::vector<Episode> &episodes)
{
	constexpr uint64_t kJoinNs = 4'000'000'000; // reading on is cheaper than restarting
	std::vector<TimeSpan> times;
	for (const Episode &e : episodes) {
		if (times.empty() || e.since_ns > times.back().until_ns + kJoinNs)
			times.push_back({e.since_ns, e.end_ns});
		times.back().until_ns = std::max(times.back().until_ns, e.end_ns + kJoinNs / 2);
	}
	return times;
}

// The end of the last time span that begins at or before an instant; 0 without one.
uint64_t EndOfSpan(const std::vector<TimeSpan> &times, uint64_t t_ns)
{
	auto after = std::partition_point(times.begin(), times.end(),
					  [&](const TimeSpan &t) { return t.since_ns <= t_ns; });
	return after == times.begin() ? 0 : after[-1].until_ns;
}

// The last mark of a user and the last hit of a probe in the minute before an episode, or in it.
void AddMarks(Work *w)
{
	Explanation *e = &w->e;
	constexpr uint64_t before_ns = 60'000'000'000;
	const auto &marks = e->run.marks;
	for (Episode &episode : e->episodes) {
		const uint64_t from_ns = episode.start_ns - std::min(episode.start_ns, before_ns);
		const std::span near(std::ranges::lower_bound(marks, from_ns, {}, &Mark::t_ns),
				     std::ranges::upper_bound(marks, episode.end_ns, {}, &Mark::t_ns));
		for (const bool probe : {false, true}) {
			const auto m = std::find_if(near.rbegin(), near.rend(),
						    [&](const Mark &mark) { return mark.probe == probe; });
			if (m == near.rend())
				continue;
			const bool earlier = m->t_ns <= episode.start_ns;
			const std::string away =
			    common::FormatDuration(earlier ? episode.start_ns - m->t_ns
							   : m->t_ns - episode.start_ns) +
			    (earlier ? " before it began" : " after it began");
			episode.evidence.push_back(probe ? "Probe: " + m->text + ", from " + away
							 : "\"" + m->text + "\" was marked " + away);
		}
	}
}

void FindAllEpisodes(Work *w)
{
	Explanation &e = w->e;
	const NamedLatency *ranked_by = w->options.ranked_by;
	e.episodes = FindEpisodes(&e.blame);
	e.tcp = FindTcp(w->reading.run, e.blame, &e.episodes);
	e.lead = FindLead(e.blame, ranked_by ? *ranked_by : UsualFigure(), ranked_by != nullptr);
	for (const CauseRow &row : e.blame.causes)
		if (e.lead.Names(row.cause))
			e.culprits[row.cause];
	if (e.blame.RowOf(Cause::SoftirqNetRx).share >= kPartOfEvent && e.lead.Names(Cause::ServerBusy))
		e.culprits[Cause::SoftirqNetRx];
	if (e.blame.RowOf(Cause::ServerBusy).share >= kPartOfEvent && e.lead.Names(Cause::SoftirqNetRx))
		e.culprits[Cause::ServerBusy];
}

// The soft interrupts of what the server sends are a part of its work: one event, although two causes.
// Without it, both are gone.
void JoinOwnSends(Work *w)
{
	Explanation &e = w->e;
	std::vector<Cause> &causes = e.lead.causes;
	if (e.lead.kind != Lead::Kind::Causes || !w->own_sends.contains(Cause::SoftirqNetRx) ||
	    !e.culprits.contains(Cause::ServerBusy))
		return;
	for (const Cause part : {Cause::ServerBusy, Cause::SoftirqNetRx})
		if (std::ranges::find(causes, part) == causes.end())
			causes.push_back(part);
	std::ranges::stable_sort(causes, std::greater(),
				 [&](Cause c) { return e.blame.RowOf(c).total_ns(); });
	const uint64_t now_ns = e.blame.latencies.*e.lead.figure->value,
		       without_ns = PercentileWithout(e.blame, *e.lead.figure, causes);
	const bool lower = static_cast<double>(without_ns) < (1 - kNoticeable) * static_cast<double>(now_ns);
	e.lead.without_ns = lower ? without_ns : 0;
	if (e.lead.next && std::ranges::find(causes, *e.lead.next) != causes.end())
		e.lead.next.reset();
}

void FindAllEvidence(Work *w)
{
	Reading &r = w->reading;
	r.progress.Plan({1});
	r.progress.Begin();
	const std::vector<TimeSpan> times = EvidenceSpans(w->e.episodes);
	w->own_sends = FindEvidenceWith(
	    CommandsOf(r.run, w->slow_log), r.run, r.timelines, w->e.blame, w->activities,
	    w->options.evidence, kEvidenceEpisodes, &w->e.episodes, r.clients,
	    [&](uint64_t from_ns, uint64_t to_ns) {
		    bool changed = r.source->Cover(from_ns, to_ns, &r.run, EndOfSpan(times, to_ns));
		    if (changed)
			    MakeTimelines(&r);
		    if (!w->activities.AreOf(r.run))
			    w->activities = ActivitiesOf(r.run);
		    return changed;
	    },
	    &w->e.culprits);
	size_t longer = 0; // than what fits into memory
	for (const Episode &one : w->e.episodes)
		longer += r.stretches.reach(one.since_ns) < one.end_ns;
	if (longer)
		w->e.notes.push_back(
		    "the evidence of " + common::Plural(longer, "episode", "episodes") +
		    " is from a part of the time: more did not fit into memory (raise --memory)");
}

void FinishOwnCodes(Work *w)
{
	w->own_codes.Finish();
}

using Pass = void (*)(Work *);

// In this order.
constexpr Pass kPasses[] = {
    // Before blame, which adds each slow request to its groups.
    CountGroups,
    // Before the accounts, because CPU times are added up for its period.
    DetectOverload,
    // Before the serving threads, because some are only known by their number of iterations.
    AccountThreads,
    // Before blame, which divides these threads' time among requests.
    FindServing,
    // Before blame, which takes the log's counts that are compared with the server's.
    FindServerCounts,
    // Before the notes, which print offsets from the first request.
    FindMeasured,
    // After the serving threads: whether each was recorded all the time.
    NoteCoverage,
    // Likewise, and after the accounts: whether the server was idle most of the time.
    NoteIdleCpu,
    // Likewise: what the recorder cannot see of some event loops.
    NoteIoUring,
    // Before blame: a request is late while its load thread does not run. Such a thread may limit an
    // overload.
    FindLoadThreads,
    // Before blame, which gives requests without an answer to the end of their server.
    FindOutages,
    // Before blame, which adds slow requests to the snapshots.
    CountSnapshots,
    // Divides each slow request's time, and finds percentiles with and without each cause.
    BlameSlow,
    // After blame, which counted the slow requests of each.
    FinishSnapshots,
    // For time that blame gives to the network: servers that were not recorded.
    FindPeers,
    // After blame, as the next three: it counts what they report.
    NoteUnknownThreads,
    NoteLimits,
    NoteKernelLog,
    NoteEnds,
    // Before evidence, which is found for each episode and for the causes that the answer names.
    FindAllEpisodes,
    // Reads the run's records near episodes again.
    FindAllEvidence,
    // After evidence, which shows whether two causes are parts of one event.
    JoinOwnSends,
    // After evidence, because a mark is an episode's last sentence.
    AddMarks,
    // After the serving threads, whose functions are added up.
    FinishOwnCodes,
};

} // namespace

void FindOwnCode(Explanation *e)
{
	const Activities activities = ActivitiesOf(e->run);
	OwnCodes codes(activities, e);
	codes.Add(0, UINT64_MAX);
	codes.Finish();
}

bool ExplainRun(const std::string &path, const ExplainOptions &options, Reading *reading, Explanation *e,
		std::string *error, int *status)
{
	reading->progress = Progress(options.progress);
	LogFacts facts;
	if (!OpenRun(path, false, options, &facts, reading, e, error, status))
		return false;
	UseStretches(reading);
	Work work = {options, *reading, *e, std::move(facts),
		     Divide(options.memory_bytes, options.page).limits};
	*status = 3;
	for (Pass pass : kPasses) {
		pass(&work);
		if (!work.error.empty()) {
			*error = work.error;
			return false;
		}
	}
	*status = 0;
	return true;
}

} // namespace forktail::analysis

// SPDX-License-Identifier: MIT
// Makes an explanation from a run: reads it, finds the serving threads, attributes time, groups slow requests
// into episodes and finds evidence.
#include "analysis/explain.h"

#include <algorithm>

#include "analysis/passes.h"
#include "analysis/timeline.h"
#include "common/format.h"

namespace forktail::analysis
{

namespace
{

constexpr uint64_t kSlowIterationNs = 1'000'000;
// Evidence is made for this many episodes, because an overloaded run can have hundreds of thousands.
constexpr size_t kEvidenceEpisodes = 1000;

// The timelines without a request log: every thread with event-loop iterations. Child processes (for example
// of a snapshot) and load generators serve no requests.
void FindLoops(const Accounts &accounts, Explanation *e)
{
	e->by_loops = true;
	for (size_t i = 0; i < e->run.threads.size(); i++) {
		const Thread &t = e->run.threads[i];
		if (accounts.Turns(i) == 0 || (t.flags & (FT_THREAD_CHILD | FT_THREAD_CLIENT)))
			continue;
		e->serving.push_back(static_cast<int>(i));
		e->timelines.emplace_back();
		e->timelines.back().thread = static_cast<uint32_t>(i);
	}
	MakeTimelines(e);
}

void FindMeasured(const LogFacts &facts, Explanation *e)
{
	uint64_t first = facts.count ? facts.first_due_ns : e->run.start_ns,
		 last = facts.count ? facts.last_end_ns : e->run.end_ns;
	e->first_ns = first;
	e->peaks = facts.peaks;
	e->measured_ns = last - first;
	if (!e->in_part)
		e->zero_ns = first;
}

// Whether the server's own counts are of all requests, and of the time that is explained. Through a proxy
// INFO is of the proxy or of one of its servers.
bool ComparesCounts(const Explanation &e)
{
	return e.run.servers.size() == 1 && e.run.behind.empty() && !e.in_part;
}

void FindServerCounts(const LogFacts &facts, Explanation *e)
{
	if (e->run.servers.size() == 1 && e->run.behind.empty())
		if (const auto counted = ServerCommandsOf(e->run, {}))
			for (const ServerCommand &c : counted->commands)
				if (c.name == "client|pause" || c.name == "failover")
					e->pauses[c.name == "failover" ? "FAILOVER" : "CLIENT PAUSE"] +=
					    c.calls;
	if (!ComparesCounts(*e))
		return;
	e->server_count = ServerCountOf(e->run);
	e->server_commands = ServerCommandsOf(e->run, facts.by_op);
}

// Time of requests before or after the recording of their server is unattributed: note the bounds.
void NoteCoverage(Explanation *e)
{
	auto note = [&](const std::string &text) { // once for several servers
		if (std::find(e->notes.begin(), e->notes.end(), text) == e->notes.end())
			e->notes.push_back(text);
	};
	for (const Timeline &t : e->timelines) {
		if (t.thread >= e->run.threads.size() || e->by_loops)
			continue;
		const Thread &thread = e->run.threads[t.thread];
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

void NoteKernelLog(Explanation *e)
{
	if (!e->run.kernel_log_joined)
		return;
	const bool all = e->blame.joined == e->blame.count;
	e->notes.push_back("the server's kernel saw " +
			   (all ? "all of the load generator's requests"
				: common::FormatCount(e->blame.joined) + " of the load generator's " +
				      common::Plural(e->blame.count, "request", "requests")) +
			   "; requests of others that it saw are left out");
}

// The recorder sees less of an event loop over io_uring than of one over epoll.
void NoteIoUring(Explanation *e)
{
	for (const Target &target : e->run.targets)
		if (target.io_uring)
			e->notes.push_back(target.comm + " (" + std::to_string(target.pid) +
					   ") uses io_uring: a thread that waits in io_uring_enter counts as "
					   "idle, whatever it waits for, and the serving threads of "
					   "connections are unknown");
}

void NoteEnds(Explanation *e)
{
	for (const std::string &note : EndNotes(*e))
		e->notes.push_back(note);
	if (const std::string note = OverloadNote(*e); !note.empty())
		e->notes.push_back(note);
}

// Inserted after the notes on serving threads.
void NoteUnknownThreads(size_t at, Explanation *e)
{
	const Blame &b = e->blame;
	if (b.unserved_requests)
		e->notes.insert(e->notes.begin() + static_cast<ptrdiff_t>(at),
				"serving thread unknown for " +
				    common::Plural(b.unserved_requests, "request", "requests") + " on " +
				    common::Plural(b.unserved_connections, "connection", "connections") +
				    ": their time is unattributed");
}

// Notes on slow requests that did not fit into memory: too many, or too long.
void NoteLimits(Explanation *e)
{
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

std::string NothingToExplain(const Run &run)
{
	if (run.threads.empty())
		return run.path + " holds no requests and no server threads: there is nothing to explain";
	return run.path + " holds no requests, and no event-loop iteration of the recorded server took " +
	       common::FormatDuration(run.min_span_ns) + " or more: there is nothing to explain";
}

} // namespace

namespace
{

// On-CPU time by thread, added up stretch by stretch.
class OwnCodes
{
public:
	explicit OwnCodes(Explanation *e) : e_(*e)
	{
		for (size_t t = 0; t < e_.run.threads.size(); t++)
			counts_.emplace_back(e_.run, e_.activities);
	}
	void Add(uint64_t from_ns, uint64_t to_ns)
	{
		for (size_t t = 0; t < counts_.size(); t++)
			counts_[t].Add(e_.run.threads[t], from_ns, to_ns);
	}
	// Requires the serving threads and the accounts.
	void Finish()
	{
		OwnCodeCount all(e_.run, e_.activities);
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
	Explanation &e_;
	std::vector<OwnCodeCount> counts_;
};

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
void UseStretches(Explanation *e)
{
	auto cover = [e](uint64_t from_ns, uint64_t to_ns) {
		bool changed = e->source->Cover(from_ns, to_ns, &e->run);
		if (changed)
			MakeTimelines(e);
		return changed;
	};
	e->stretches.cover = [e, cover](uint64_t from_ns, uint64_t to_ns) {
		bool changed = cover(from_ns, to_ns);
		for (Timeline &t : e->timelines)
			SumUp(&t);
		return changed;
	};
	e->stretches.reach = [e](uint64_t from_ns) { return e->source->Reach(from_ns); };
	e->stretches.each = [e, cover](const auto &see) {
		const std::vector<RunSource::Stretch> &all = e->source->stretches();
		if (all.size() > 1)
			e->progress.Begin();
		for (const RunSource::Stretch &s : all) {
			if (all.size() > 1)
				e->progress.At(static_cast<uint64_t>(&s - all.data()), all.size());
			cover(s.from_ns, s.to_ns);
			see(s.from_ns, s.to_ns);
		}
	};
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

// The account of each thread over the whole run, and its CPU time during an overload.
Accounts AccountThreads(OwnCodes *codes, CpuTimes *in_overload, Explanation *e)
{
	Accounts accounts;
	std::string why;
	if (ComparesCounts(*e))
		e->server_threads = ServerThreadsOf(e->run, ProcessOfServer(e->run, 0, &why));
	CpuTimes cpu(e->server_threads.period);
	if (e->overload)
		*in_overload = CpuTimes(e->overload->period);
	e->stretches.each([&](uint64_t from_ns, uint64_t to_ns) {
		e->activities = ActivitiesOf(e->run);
		accounts.Add(e->run, from_ns, to_ns);
		codes->Add(from_ns, to_ns);
		if (!e->server_threads.threads.empty())
			cpu.Add(e->run, from_ns, to_ns);
		if (e->overload)
			in_overload->Add(e->run, from_ns, to_ns);
	});
	AddCpuTimes(cpu, &e->server_threads);
	e->waits_for_locks = accounts.WaitsForLocks();
	for (size_t t = 0; t < e->run.threads.size(); t++) {
		e->run.threads[t].usual_turn_ns = accounts.UsualTurnNs(t);
		e->run.threads[t].counted = accounts.CountedOf(t);
	}
	e->accounts = accounts.Result(e->run);
	if (e->in_part)
		for (Account &a : e->accounts) {
			const Thread &t = e->run.threads[a.thread];
			uint64_t from_ns = std::max(t.start_ns, e->run.start_ns),
				 to_ns = std::min(t.end_ns, e->run.end_ns);
			a.wall_ns = to_ns - std::min(from_ns, to_ns);
		}
	return accounts;
}

// Restricts the run to the requested part. False: *error and *status are set.
bool TakePart(const PartAsked &asked, Explanation *e, std::string *error, int *status)
{
	e->in_part = asked.any();
	if (!e->in_part)
		return true;
	e->whole = e->source->Span(&e->run);
	e->zero_ns = e->whole.since_ns;
	if (int why = FindPart(asked, e->run, e->whole.since_ns, e->whole.until_ns, &e->part, error)) {
		*status = why;
		return false;
	}
	e->source->Restrict(e->part);
	return true;
}

// Threads' records of a part are explained until its last request was answered.
void BoundToPart(const LogFacts &facts, Explanation *e)
{
	if (!e->in_part)
		return;
	const TimeSpan &whole = e->whole;
	uint64_t from_ns = std::max(e->part.since_ns, whole.since_ns),
		 to_ns = std::max(std::min(e->part.until_ns, whole.until_ns), facts.last_end_ns);
	e->source->Bound(from_ns, to_ns + 1);
	e->run.start_ns = from_ns;
	e->run.end_ns = to_ns;
	e->notes.push_back("only requests due from " + common::FormatOffset(from_ns, e->zero_ns) + " to " +
			   common::FormatOffset(std::min(e->part.until_ns, whole.until_ns), e->zero_ns) +
			   " are explained, with what threads did in that time: " +
			   SpanText(e->run, whole.since_ns, whole.until_ns));
}

bool OpenRun(const std::string &path, bool scan, const ExplainOptions &options, LogFacts *facts,
	     Explanation *e, std::string *error, int *status)
{
	const Memory memory = Divide(options.memory_bytes, options.page);
	*status = 3;
	e->run = Run();
	e->log.reset();
	e->log_before.reset();
	e->source = std::make_unique<RunSource>();
	e->source->OnProgress(&e->progress);
	if (!e->source->Open(path, scan, &e->run, error, options.part))
		return false;
	if (!TakePart(options.part, e, error, status))
		return false;
	// A kernel log has more columns; one that is joined is read beside the load generator's.
	const size_t window = e->run.kernel_log_joined ? memory.window / 3
			      : SeenInKernel(e->run)   ? memory.window * 2 / 3
						       : memory.window;
	std::unique_ptr<LogReader> log = e->source->OpenLog(window, &e->run);
	log->OnProgress(&e->progress);
	e->log = std::move(log);
	e->progress.Plan({kProgressCounted, kProgressScanned});
	*facts = CountRequests(e->run, e->log.get(), CommandCountsSpan(e->run));
	e->log_before = e->source->OpenLogBefore(window, &e->run);
	if (e->log_before && facts->count) {
		AddEarlier(CountRequests(e->run, e->log_before.get()), facts);
		e->log->Forget();
	}
	e->source->OpenServers(memory.stretch, &e->run);
	if (!scan && e->source->Misled())
		return OpenRun(path, true, options, facts, e, error, status);
	if (e->in_part && e->source->has_log() && !facts->count) {
		*error = "no request was due in that time in " + e->run.path + ": " +
			 SpanText(e->run, e->whole.since_ns, e->whole.until_ns);
		return false;
	}
	if (facts->count)
		ExtendRun(facts->first_due_ns, facts->last_end_ns, &e->run);
	BoundToPart(*facts, e);
	e->source->Finish(&e->run);
	return true;
}

// Counts requests by client and command, which reads the log once more, and sets what is called for slow
// requests.
void CountGroups(const ExplainOptions &options, bool requests, RequestGroups *groups, BlameLimits *limits,
		 Explanation *e)
{
	const bool wanted = requests && (options.groups || SeenInKernel(e->run));
	if (wanted)
		groups->Count(e->run, e->log.get());
	if (wanted || options.tell)
		limits->tell = [=, &options](const SlowRequest &r, const Part *parts) {
			if (options.tell)
				options.tell(e->run, r, parts);
			if (wanted)
				groups->AddSlow(e->run, r, parts);
		};
}

// The last mark in the minute before an episode, or in it.
void AddMarks(Explanation *e)
{
	constexpr uint64_t before_ns = 60'000'000'000;
	for (Episode &episode : e->episodes) {
		auto after = std::upper_bound(e->run.marks.begin(), e->run.marks.end(), episode.end_ns,
					      [](uint64_t t_ns, const Mark &m) { return t_ns < m.t_ns; });
		if (after == e->run.marks.begin() || (after - 1)->t_ns + before_ns < episode.start_ns)
			continue;
		const Mark &m = *(after - 1);
		const bool earlier = m.t_ns <= episode.start_ns;
		episode.evidence.push_back(
		    "\"" + m.text + "\" was marked " +
		    common::FormatDuration(earlier ? episode.start_ns - m.t_ns : m.t_ns - episode.start_ns) +
		    (earlier ? " before it began" : " after it began"));
	}
}

// Groups slow requests into episodes, and finds their evidence. `evidence`: sentences for each. `ranked_by`:
// as in ExplainOptions.
void ExplainEpisodes(size_t evidence, const NamedLatency *ranked_by, Explanation *e)
{
	e->episodes = FindEpisodes(&e->blame);
	e->lead = FindLead(e->blame, ranked_by ? *ranked_by : UsualFigure(), ranked_by != nullptr);
	for (const CauseRow &row : e->blame.causes)
		if (e->lead.Names(row.cause))
			e->culprits[row.cause];
	e->progress.Plan({1});
	e->progress.Begin();
	const std::vector<TimeSpan> times = EvidenceSpans(e->episodes);
	FindEvidence(
	    e->run, e->timelines, e->blame, e->activities, evidence, kEvidenceEpisodes, &e->episodes,
	    e->clients,
	    [&](uint64_t from_ns, uint64_t to_ns) {
		    bool changed = e->source->Cover(from_ns, to_ns, &e->run, EndOfSpan(times, to_ns));
		    if (changed)
			    MakeTimelines(e);
		    if (!e->activities.AreOf(e->run))
			    e->activities = ActivitiesOf(e->run);
		    return changed;
	    },
	    &e->culprits);
	AddMarks(e);
}

} // namespace

void FindOwnCode(Explanation *e)
{
	OwnCodes codes(e);
	codes.Add(0, UINT64_MAX);
	codes.Finish();
}

bool ExplainRun(const std::string &path, const ExplainOptions &options, Explanation *e, std::string *error,
		int *status)
{
	Memory memory = Divide(options.memory_bytes, options.page);
	RequestGroups groups;
	e->progress = Progress(options.progress);
	LogFacts facts;
	if (!OpenRun(path, false, options, &facts, e, error, status))
		return false;
	*status = 3;
	CountGroups(options, facts.count > 0, &groups, &memory.limits, e);
	UseStretches(e);
	e->progress.Plan(e->source->stretches().size() > 1 ? kPlanInStretches : kPlan);
	OwnCodes own_codes(e);
	CpuTimes in_overload({0, 0});
	e->overload = FindOverload(e->run, facts);
	const Accounts accounts = AccountThreads(&own_codes, &in_overload, e);
	bool requests = facts.count > 0;
	if (requests)
		FindServers(facts, accounts, e->stretches, e);
	else
		FindLoops(accounts, e);
	if (!requests && e->timelines.empty()) {
		*error = NothingToExplain(e->run);
		return false;
	}
	FindServerCounts(facts, e);
	size_t notes_of_servers = e->notes.size();
	FindMeasured(facts, e);
	NoteCoverage(e);
	NoteIoUring(e);

	Threshold slow = options.slow;
	if (!requests && !slow.ns && slow.percentile <= 0)
		slow.ns = kSlowIterationNs;
	e->clients = FindClients(e->run, facts.first_due_of);
	if (e->overload)
		FindLimit(*e, in_overload, &*e->overload);
	if (requests)
		e->server_ends = FindServerEnds(e->run, e->log.get());
	facts.outages = OutagesOf(e->run, e->server_ends);
	const Earlier earlier = {e->log_before.get(), e->source->BeforePart(), e->part.since_ns};
	e->blame = requests ? BlameLog(e->run, e->log.get(), std::move(facts), e->timelines, slow, e->clients,
				       e->by_thread, memory.limits, e->stretches, earlier)
			    : BlameIterations(e->run, e->timelines, slow, memory.limits, e->stretches);
	for (const auto &[pid, peers] : UnrecordedPeers(e->run))
		e->unrecorded_peers.insert(peers.begin(), peers.end());
	NoteUnknownThreads(notes_of_servers, e);
	NoteLimits(e);
	NoteKernelLog(e);
	NoteEnds(e);
	e->by_client = groups.Clients(e->run);
	e->by_command = groups.Commands(e->run);
	ExplainEpisodes(options.evidence, options.ranked_by, e);
	own_codes.Finish();
	*status = 0;
	return true;
}

} // namespace forktail::analysis

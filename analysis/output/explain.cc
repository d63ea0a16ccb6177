// SPDX-License-Identifier: MIT
// From a path to an explanation: read, find the serving threads, blame, group, find evidence.
#include "explain.h"

#include <algorithm>

#include "analysis/blame/count.h"
#include "analysis/units.h"
#include "servers.h"

namespace forktail
{

namespace
{

constexpr uint64_t kSlowIterationNs = 1'000'000;
// Evidence is made for this many episodes; a run at its limit can have hundreds of thousands.
constexpr size_t kEvidenceEpisodes = 1000;
// Requests of the log that are in memory at a time, twice: while a window is looked at the next one is read.
constexpr size_t kWindow = 400'000;

// Without one: every thread with event-loop iterations. Children (a snapshot, say) serve nobody, nor do load
// generators.
void FindLoops(Explanation *e)
{
	for (size_t i = 0; i < e->run.threads.size(); i++) {
		const Thread &t = e->run.threads[i];
		if (t.iteration_count == 0 || (t.flags & (FT_THREAD_CHILD | FT_THREAD_CLIENT)))
			continue;
		e->serving.push_back(static_cast<int>(i));
		e->timelines.push_back(BuildTimeline(e->run, static_cast<uint32_t>(i)));
	}
}

void FindMeasured(const LogFacts &facts, Explanation *e)
{
	uint64_t first = facts.count ? facts.first_due_ns : e->run.start_ns,
		 last = facts.count ? facts.last_end_ns : e->run.end_ns;
	e->zero_ns = first;
	e->measured_ns = last - first;
}

// Time that requests spent outside the recording of their server is Unknown; say how much was outside.
void NoteCoverage(Explanation *e)
{
	auto note = [&](const std::string &text) { // of several servers, once
		if (std::find(e->notes.begin(), e->notes.end(), text) == e->notes.end())
			e->notes.push_back(text);
	};
	for (const Timeline &t : e->timelines) {
		if (t.empty() || e->blame.from_iterations)
			continue;
		uint64_t last = e->zero_ns + e->measured_ns;
		uint64_t before = t.start_ns() > e->zero_ns ? t.start_ns() - e->zero_ns : 0;
		uint64_t after = t.end_ns() < last ? last - t.end_ns() : 0;
		if (before)
			note("the server was recorded from " + FormatOffset(t.start_ns(), e->zero_ns) +
			     " on: what requests met before that is unknown");
		if (after)
			note("the server was recorded until " + FormatOffset(t.end_ns(), e->zero_ns) +
			     " only: what requests met after that is unknown");
	}
}

// A server that is gone while others go on looks like one that nobody asks anything.
void NoteEnded(Explanation *e)
{
	if (e->run.targets.size() < 2)
		return;
	for (const EndedTarget &target : e->run.ended)
		e->notes.push_back(target.comm + " (" + std::to_string(target.pid) + ") ended at " +
				   FormatOffset(target.t_ns, e->zero_ns) +
				   ": what came in its place, if anything did, was not recorded");
}

// What the recorder sees of a loop over io_uring is less than of one over epoll.
void NoteRings(Explanation *e)
{
	for (const Target &target : e->run.targets)
		if (target.io_uring)
			e->notes.push_back(target.comm + " (" + std::to_string(target.pid) +
					   ") works over io_uring: a thread that waits in io_uring_enter "
					   "counts as idle whatever it "
					   "waits for, and which thread serves a connection can't be told");
}

// Among the notes on who serves whom.
void NoteUnserved(size_t at, Explanation *e)
{
	const Blame &b = e->blame;
	if (b.unserved_requests)
		e->notes.insert(e->notes.begin() + static_cast<ptrdiff_t>(at),
				"which thread served it is not known of " +
				    Plural(b.unserved_requests, "request", "requests") + " on " +
				    Plural(b.unserved_connections, "connection", "connections") +
				    ": what they met is unknown");
}

std::string NothingToExplain(const Run &run)
{
	if (run.threads.empty())
		return run.path +
		       " holds neither requests nor a server's threads: there is nothing to explain";
	return run.path + " holds no requests, and no event-loop iteration of the recorded server took " +
	       FormatDuration(run.min_span_ns) + " or more: there is nothing to explain";
}

} // namespace

void FindOwnCode(Explanation *e)
{
	OwnCodeCount all(e->run, e->activities);
	uint64_t all_ns = 0;
	for (uint32_t t = 0; t < e->run.threads.size(); t++) {
		const Thread &thread = e->run.threads[t];
		uint64_t own_ns = e->accounts[t].by_cause[Index(Cause::ServerBusy)];
		OwnCodeCount one(e->run, e->activities);
		one.Add(thread, 0, UINT64_MAX);
		e->own_codes.push_back(one.Result(own_ns));
		if (std::find(e->serving.begin(), e->serving.end(), static_cast<int>(t)) == e->serving.end())
			continue;
		all.Add(thread, 0, UINT64_MAX);
		all_ns += own_ns;
	}
	e->own_code = all.Result(all_ns);
}

bool ExplainRun(const std::string &path, const ExplainOptions &options, Explanation *e, std::string *error,
		int *status)
{
	*status = 3;
	e->source = std::make_unique<RunSource>();
	if (!e->source->Open(path, &e->run, error))
		return false;
	e->log = e->source->OpenLog(kWindow, &e->run);
	const LogFacts facts = CountRequests(e->run, e->log.get());
	e->source->LoadServers(&e->run);
	if (facts.count)
		ExtendRun(facts.first_due_ns, facts.last_end_ns, &e->run);
	e->source->Finish(&e->run);
	bool requests = facts.count > 0;
	e->blame.from_iterations = !requests;
	if (requests)
		FindServers(facts, e);
	else
		FindLoops(e);
	if (!requests && e->timelines.empty()) {
		*error = NothingToExplain(e->run);
		return false;
	}
	size_t notes_of_servers = e->notes.size();
	FindMeasured(facts, e);
	NoteCoverage(e);
	NoteEnded(e);
	NoteRings(e);

	Threshold slow = options.slow;
	if (!requests && !slow.ns && slow.percentile <= 0)
		slow.ns = kSlowIterationNs;
	e->clients = FindClients(e->run, facts.first_due_of);
	e->blame =
	    requests ? BlameLog(e->run, e->log.get(), facts, e->timelines, slow, e->clients, e->by_thread, {})
		     : BlameRun(e->run, e->timelines, slow);
	NoteUnserved(notes_of_servers, e);
	e->episodes = FindEpisodes(&e->blame);
	e->activities = ActivitiesOf(e->run);
	FindEvidence(e->run, e->timelines, e->blame, e->activities, options.evidence, kEvidenceEpisodes,
		     &e->episodes, e->clients);
	for (uint32_t t = 0; t < e->run.threads.size(); t++)
		e->accounts.push_back(AccountOf(e->run, t));
	FindOwnCode(e);
	*status = 0;
	return true;
}

} // namespace forktail

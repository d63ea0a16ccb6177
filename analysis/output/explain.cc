// SPDX-License-Identifier: MIT
// From a path to an explanation: read, find the serving threads, blame, group, find evidence.
#include "explain.h"

#include <algorithm>

#include "analysis/units.h"

namespace forktail
{

namespace
{

constexpr uint64_t kSlowIterationNs = 1'000'000;
// Evidence is made for this many episodes; a run at its limit can have hundreds of thousands.
constexpr size_t kEvidenceEpisodes = 1000;

void AddServing(int thread, Explanation *e)
{
	e->serving.push_back(thread);
	e->timelines.push_back(thread >= 0 ? BuildTimeline(e->run, static_cast<uint32_t>(thread))
					   : Timeline());
}

// Of several servers, which requests went to.
std::vector<bool> UsedServers(const Run &run)
{
	std::vector<bool> used(std::max<size_t>(run.servers.size(), 1), run.servers.size() <= 1);
	for (size_t i = 0; run.servers.size() > 1 && i < run.requests.size(); i++) {
		uint32_t server = run.connections[run.requests.connection[i]].server;
		if (server < used.size())
			used[server] = true;
	}
	return used;
}

// How many requests went through a proxy to nobody knows which server.
size_t UnknownBehind(const Run &run)
{
	const Requests &q = run.requests;
	std::vector<bool> through(run.connections.size());
	for (const Load &load : run.loads)
		for (uint32_t c = 0; load.behind && c < load.connection_count; c++)
			through[load.first_connection + c] = true;
	size_t unknown = 0;
	for (size_t i = 0; i < q.behind.size(); i++)
		unknown += q.behind[i] == 0 && through[q.connection[i]] && q.status[i] != FT_STATUS_UNSENT;
	return unknown;
}

// The servers behind proxies: those that were not recorded can't be blamed for anything.
void FindBehind(Explanation *e)
{
	bool proxy =
	    std::any_of(e->serving.begin(), e->serving.end(), [](int thread) { return thread >= 0; });
	std::string missing;
	size_t count = 0;
	for (const Behind &instance : e->run.behind) {
		std::string why;
		AddServing(InstanceThread(e->run, instance, &why), e);
		if (e->serving.back() >= 0)
			continue;
		missing += (count++ ? "; " : "") + why;
	}
	if (!proxy)
		return; // that there is nothing to explain was said
	if (count)
		e->notes.push_back("time at " +
				   Plural(count, "server behind the proxy", "servers behind the proxy") +
				   " is called network: " + missing);
	if (size_t unknown = UnknownBehind(e->run))
		e->notes.push_back("which server behind the proxy it went to is not known of " +
				   Plural(unknown, "request", "requests") + ": time there is called network");
}

// The serving threads and their timelines when there is a request log: one per server, one per server behind.
void FindServers(Explanation *e)
{
	std::vector<bool> used = UsedServers(e->run);
	for (size_t s = 0; s < used.size(); s++) {
		std::string why;
		if (!used[s]) {
			AddServing(-1, e);
			continue;
		}
		AddServing(ServingThread(e->run, e->run.servers.empty() ? -1 : static_cast<int>(s), &why), e);
		if (e->serving.back() < 0)
			e->notes.push_back("the time of requests" +
					   (e->run.servers.empty() ? "" : " to " + e->run.servers[s]) +
					   " can't be explained: " + why);
	}
	FindBehind(e);
}

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

void FindMeasured(Explanation *e)
{
	const Requests &q = e->run.requests;
	uint64_t first = e->run.start_ns, last = e->run.end_ns;
	if (q.size()) {
		first = *std::min_element(q.intended_ns.begin(), q.intended_ns.end());
		last = *std::max_element(q.end_ns.begin(), q.end_ns.end());
	}
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
		if (t.empty() || e->run.requests.size() == 0)
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
	if (!LoadRun(path, &e->run, error))
		return false;
	bool requests = e->run.requests.size() > 0;
	if (requests)
		FindServers(e);
	else
		FindLoops(e);
	if (!requests && e->timelines.empty()) {
		*error = NothingToExplain(e->run);
		return false;
	}
	FindMeasured(e);
	NoteCoverage(e);
	NoteEnded(e);

	Threshold slow = options.slow;
	if (!requests && !slow.ns && slow.percentile <= 0)
		slow.ns = kSlowIterationNs;
	e->clients = FindClients(e->run);
	e->blame = BlameRun(e->run, e->timelines, slow, e->clients);
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

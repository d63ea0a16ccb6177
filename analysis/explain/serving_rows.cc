// SPDX-License-Identifier: MIT
// Maps the servers of a request log to processes, and connections to serving threads. A server with one
// thread needs no map of connections. With several threads, the connection of a request decides.
#include "serving_rows.h"

#include <algorithm>
#include <map>

#include "analysis/timeline/serving.h"
#include "analysis/timeline/thread_waits.h"
#include "common/format/units.h"

namespace forktail::analysis
{

namespace
{

// MakeTimelines makes its timeline.
void AddServing(int thread, Explanation *e)
{
	e->serving.push_back(thread);
	e->timelines.emplace_back();
	if (thread >= 0)
		e->timelines.back().thread = static_cast<uint32_t>(thread);
}

// The hop of a thread. Adds one if it has none.
uint16_t HopOfThread(uint32_t thread, Explanation *e)
{
	for (size_t i = 0; i < e->timelines.size(); i++)
		if (e->timelines[i].thread == thread)
			return static_cast<uint16_t>(i);
	AddServing(static_cast<int>(thread), e);
	return static_cast<uint16_t>(e->timelines.size() - 1);
}

// The servers that received requests.
std::vector<bool> UsedServers(const Run &run, const LogFacts &facts)
{
	std::vector<bool> used(std::max<size_t>(run.servers.size(), 1), run.servers.size() <= 1);
	for (size_t c = 0; c < facts.first_due_of.size(); c++)
		if (run.connections[c].server < used.size() && facts.first_due_of[c] != UINT64_MAX)
			used[run.connections[c].server] = true;
	return used;
}

// The servers behind proxies. Time at servers that were not recorded counts as network.
void FindServersBehind(const LogFacts &facts, const Accounts &accounts, Explanation *e)
{
	bool proxy =
	    std::any_of(e->serving.begin(), e->serving.end(), [](int thread) { return thread >= 0; });
	std::string missing;
	size_t count = 0;
	for (const Behind &instance : e->run.behind) {
		std::string why;
		AddServing(InstanceThread(e->run, accounts, instance, &why), e);
		if (e->serving.back() >= 0)
			continue;
		missing += (count++ ? "; " : "") + why;
	}
	if (!proxy)
		return; // a note already says that nothing can be explained
	if (count)
		e->notes.push_back(
		    "time at " +
		    common::Plural(count, "server behind the proxy", "servers behind the proxy") +
		    (SeenInKernel(e->run) ? " is unattributed: " : " counts as network: ") + missing);
	if (uint64_t unknown = facts.behind ? facts.behind_unknown : 0)
		e->notes.push_back("the server behind the proxy is unknown for " +
				   common::Plural(unknown, "request", "requests") +
				   (ClientsOfServers(e->run).empty() ? ": time there counts as network"
								     : ": time there is unattributed"));
}

// The number of connections that each thread served, even for a short time.
using Shares = std::map<uint32_t, size_t>;
std::vector<Shares> SharesOf(const Run &run, const ServedConnections &served)
{
	std::vector<Shares> shares(std::max<size_t>(run.servers.size(), 1));
	for (size_t c = 0; c < served.size(); c++)
		if (size_t server = run.connections[c].server; server < shares.size())
			for (const Served &s : served[c])
				shares[server][s.thread]++;
	return shares;
}

uint32_t MostShared(const Shares &shares)
{
	return std::max_element(shares.begin(), shares.end(),
				[](const auto &a, const auto &b) { return a.second < b.second; })
	    ->first;
}

// The main thread behind an I/O thread that reads connections and passes requests on (Redis 8's io-threads),
// or -1.
int MainThreadOf(const Run &run, uint32_t helper)
{
	const Thread &t = run.threads[helper];
	if (t.tid == t.tgid || t.comm.rfind("io_thd_", 0) != 0)
		return -1;
	for (size_t i = 0; i < run.threads.size(); i++)
		if (run.threads[i].tid == t.tgid && run.threads[i].start_ns <= t.end_ns &&
		    t.start_ns <= run.threads[i].end_ns)
			return static_cast<int>(i);
	return -1;
}

// Further threads of servers, and the serving threads of each connection.
void FindThreads(const ServedConnections &served, const std::vector<Shares> &shares, Explanation *e)
{
	std::vector<bool> several(shares.size());
	bool any = false;
	for (size_t s = 0; s < shares.size(); s++) {
		several[s] = shares[s].size() > 1;
		for (const auto &[thread, count] : shares[s])
			several[s] = several[s] || MainThreadOf(e->run, thread) >= 0;
		any |= several[s];
	}
	if (!any)
		return;
	Serving &by = e->by_thread;
	size_t first = shares.size();
	for (size_t s = 0; s < shares.size(); s++) {
		for (const auto &[thread, count] : shares[s]) {
			uint16_t hop = HopOfThread(thread, e);
			if (several[s] && hop >= first &&
			    std::find(by.more.begin(), by.more.end(), hop) == by.more.end())
				by.more.push_back(hop);
			int main = MainThreadOf(e->run, thread);
			if (main < 0)
				continue;
			uint16_t to = HopOfThread(static_cast<uint32_t>(main), e);
			by.hands_to.resize(e->timelines.size(), kNoHop);
			by.hands_to[hop] = to;
		}
	}
	by.connections.resize(served.size());
	for (size_t c = 0; c < served.size(); c++) {
		size_t server = e->run.connections[c].server;
		if (server >= several.size() || !several[server]) {
			uint16_t hop = static_cast<uint16_t>(server < first ? server : 0);
			by.connections[c].push_back({0, UINT64_MAX, hop});
			continue;
		}
		for (const Served &s : served[c])
			by.connections[c].push_back({s.from_ns, s.to_ns, HopOfThread(s.thread, e)});
	}
}

// Makes a hop for each thread that a serving thread waited for, in the order of the serving threads.
void FindAwaitedThreads(const Stretches &stretches, Explanation *e)
{
	auto is_helper = [](const Thread &t) { return t.comm.rfind("io_thd_", 0) == 0; };
	if (!e->waits_for_locks && std::none_of(e->run.threads.begin(), e->run.threads.end(), is_helper))
		return;
	std::vector<std::vector<uint32_t>> waited_for(e->timelines.size());
	stretches.each([&](uint64_t, uint64_t) {
		for (size_t i = 0; i < waited_for.size(); i++)
			for (const Foreign &f : e->timelines[i].foreign)
				if (std::find(waited_for[i].begin(), waited_for[i].end(), f.thread) ==
				    waited_for[i].end())
					waited_for[i].push_back(f.thread);
	});
	for (const std::vector<uint32_t> &threads : waited_for)
		for (uint32_t thread : threads)
			if (std::none_of(e->timelines.begin(), e->timelines.end(),
					 [&](const Timeline &t) { return t.thread == thread; }))
				e->timelines.push_back(BuildTimeline(e->run, thread));
}

} // namespace

void MakeTimelines(Explanation *e)
{
	ThreadTimelines threads(e->run);
	for (size_t i = 0; i < e->timelines.size(); i++) {
		Timeline &t = e->timelines[i];
		if (t.thread >= e->run.threads.size())
			continue;
		t = BuildTimeline(e->run, t.thread);
		if (i < e->serving.size() && !t.empty() && !e->by_loops)
			ResolveOthers(&threads, &t);
	}
	for (Timeline &t : e->clients.timelines)
		t = BuildTimeline(e->run, t.thread);
}

void FindServers(const LogFacts &facts, const Accounts &accounts, const Stretches &stretches, Explanation *e)
{
	const ServedConnections served = FindServed(e->run);
	const std::vector<Shares> shares = SharesOf(e->run, served);
	std::vector<bool> used = UsedServers(e->run, facts);
	for (size_t s = 0; s < used.size(); s++) {
		std::string why;
		if (!used[s]) {
			AddServing(-1, e);
			continue;
		}
		AddServing(!shares[s].empty()
			       ? static_cast<int>(MostShared(shares[s]))
			       : ServingThread(e->run, accounts,
					       e->run.servers.empty() ? -1 : static_cast<int>(s), &why),
			   e);
		if (e->serving.back() < 0)
			e->notes.push_back("the time of requests" +
					   (e->run.servers.empty() ? "" : " to " + e->run.servers[s]) +
					   " cannot be explained: " + why);
	}
	FindServersBehind(facts, accounts, e);
	FindThreads(served, shares, e);
	MakeTimelines(e);
	FindAwaitedThreads(stretches, e);
}

} // namespace forktail::analysis

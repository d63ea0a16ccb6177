// SPDX-License-Identifier: MIT
// A hop's number is its index among timelines: servers in the log's order, then those behind a proxy. So the
// address comes from the load generator, and the process name from the recorder.
#include "hops.h"

#include <algorithm>

#include "analysis/run/hosts.h"

namespace forktail::analysis
{

namespace
{

// The index among servers and those behind them. For a further thread of a process it is that of the first
// one.
size_t PlaceOfProcess(const Run &run, const std::vector<Timeline> &timelines, uint16_t hop, uint32_t pid)
{
	size_t places = run.servers.size() + run.behind.size();
	if (hop < places)
		return hop;
	for (size_t i = 0; i < std::min(places, timelines.size()); i++)
		if (timelines[i].thread < run.threads.size() && run.threads[timelines[i].thread].tgid == pid)
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

HopName HopNameOf(const Run &run, const std::vector<Timeline> &timelines, uint16_t hop, bool from_iterations)
{
	HopName name;
	if (hop >= timelines.size() || timelines[hop].thread >= run.threads.size())
		return name;
	const Thread &thread = run.threads[timelines[hop].thread];
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
	for (const Timeline &t : timelines)
		if (t.thread < run.threads.size() && run.threads[t.thread].tgid == process &&
		    run.threads[t.thread].tid != thread.tid)
			name.thread = ThreadText(run, thread);
	if (from_iterations)
		return name;
	size_t place = PlaceOfProcess(run, timelines, hop, process);
	if (place < run.servers.size())
		name.address = run.servers[place];
	else if (place - run.servers.size() < run.behind.size())
		name.address = run.behind[place - run.servers.size()].address;
	return name;
}

} // namespace forktail::analysis

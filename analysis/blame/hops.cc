// SPDX-License-Identifier: MIT
// A hop's number is its place among timelines: servers in the log's order, then those behind a proxy. So its
// address is the load generator's word, and what the process is called the recorder's.
#include "hops.h"

namespace forktail
{

std::string HopName::text() const
{
	return comm + " " + (address.empty() ? std::to_string(pid) : address);
}

HopName HopNameOf(const Run &run, const std::vector<Timeline> &timelines, uint16_t hop, bool from_iterations)
{
	HopName name;
	if (hop >= timelines.size() || timelines[hop].thread >= run.threads.size())
		return name;
	name.pid = run.threads[timelines[hop].thread].tgid;
	name.comm = run.threads[timelines[hop].thread].comm;
	for (const Target &target : run.targets)
		if (target.pid == name.pid && !target.comm.empty())
			name.comm = target.comm;
	if (from_iterations)
		return name;
	size_t behind = hop - run.servers.size();
	if (hop < run.servers.size())
		name.address = run.servers[hop];
	else if (behind < run.behind.size())
		name.address = run.behind[behind].address;
	return name;
}

} // namespace forktail

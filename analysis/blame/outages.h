// SPDX-License-Identifier: MIT
// Outages: times in which keys had no server, as the load generator saw them (a failover, a server that was
// down), or because the recorded process of a server had ended. The time that a request waited in one is
// neither the client's nor the network's.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/run/run.h"

namespace forktail::analysis
{

constexpr int kAnyServer = -1;

// From the last answer before, or the end of the server's process, to the first answer after it
// (CLOCK_MONOTONIC ns), or to the end of the load.
struct Outage {
	uint64_t begin_ns, end_ns;
	int server = kAnyServer; // index into Run::servers
};

// Those that the load generator noted.
std::vector<Outage> OutagesOf(const Run &run);

// How long a request to a server (kAnyServer: it is not known to which) with these times was without one: its
// time in the longest outage that it waited for. A request that ended before the outage did was served by
// another server, unless it failed.
uint64_t WithoutServer(const std::vector<Outage> &outages, uint64_t due_ns, uint64_t end_ns, bool failed,
		       int server = kAnyServer);

} // namespace forktail::analysis

// SPDX-License-Identifier: MIT
// Outages: times in which keys had no server, as the load generator saw them (a failover, a server that was
// down). The time that a request waited in one is neither the client's nor the network's.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/run/run.h"

namespace forktail::analysis
{

// From the last answer before to the first one after it (CLOCK_MONOTONIC ns), or to the end of the load.
struct Outage {
	uint64_t begin_ns, end_ns;
};

std::vector<Outage> OutagesOf(const Run &run);

// How long a request with these times was without a server: its time in the longest outage that it waited
// for. A request that ended before the outage did was served by another server, unless it failed.
uint64_t WithoutServer(const std::vector<Outage> &outages, uint64_t due_ns, uint64_t end_ns, bool failed);

} // namespace forktail::analysis

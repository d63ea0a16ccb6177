// SPDX-License-Identifier: MIT
// Outages: times in which keys had no server, as the load generator saw them (a failover, a server that was
// gone). What a request waited meanwhile is neither the client's nor the network's.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/run/run.h"

namespace forktail::analysis
{

// From the last answer before to the first one after, CLOCK_MONOTONIC ns; without a first one to the end of
// the load.
struct Outage {
	uint64_t begin_ns, end_ns;
};

std::vector<Outage> OutagesOf(const Run &run);

// How long a request that was due and that ended then was without a server: its time in the longest outage
// that it waited out. One that ended before the outage did was another server's, unless it failed.
uint64_t WithoutServer(const std::vector<Outage> &outages, uint64_t due_ns, uint64_t end_ns, bool failed);

} // namespace forktail::analysis

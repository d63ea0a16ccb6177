// SPDX-License-Identifier: MIT
// What the server itself said of an episode: its slow log, its latency monitor, its forks, as the load
// generator's observer put them into the recording; and outages, which the load generator saw. It is hearsay
// beside what the recorder saw, and often all there is when nobody could trace the server's host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/run/run.h"

namespace forktail::analysis
{

// Sentences on what the server said of from_ns..to_ns (CLOCK_MONOTONIC), the weightiest first, at most
// `limit`. Left out is what lasted less than a quarter of worst_ns, an episode's longest latency: it doesn't
// explain it.
std::vector<std::string> ServerWords(const Run &run, uint64_t from_ns, uint64_t to_ns, uint64_t worst_ns,
				     size_t limit);

} // namespace forktail::analysis

// SPDX-License-Identifier: MIT
// The sentences on the screen of `forktail watch`: the facts of a second in addition to its bars.
#pragma once

#include <string>
#include <vector>

#include "live/watch.h"

namespace forktail::live::watch
{

// One line per fact, the most important first: stalls in progress, notes of the recorder, children, forks,
// fsync, faults, CPU holders, disks, other threads.
std::vector<std::string> FactsOf(const Frame &frame);

// The status line: the recorder, its cost, lost records, the ring.
std::string StatusText(const Health &health);

// "20:15:03 UTC" for ns since 1970; "--:--:--" for 0.
std::string ClockText(uint64_t realtime_ns);
// One iteration as text: "50.1 ms at 20:15:03: fork 48.0 ms (96 %), own-code 2.1 ms", and its evidence.
std::string WorstText(const WorstIteration &iteration, uint64_t realtime_ns);

} // namespace forktail::live::watch

// SPDX-License-Identifier: MIT
// The sentences on `forktail watch`'s screen: what there is to say of a second beside its bars.
#pragma once

#include <string>
#include <vector>

#include "frame.h"

namespace forktail::live::watch
{

// One line each, what matters most first: what a thread is in the middle of, children, forks, fsync, faults,
// who took the CPU, disks, other threads, what the recorder noted. Nothing is said of what did not happen.
std::vector<std::string> FactsOf(const Frame &frame);

// The recorder, its cost, what was lost, what is on disk.
std::string StatusText(const Health &health);

// "20:15:03 UTC", of ns since 1970; "--:--:--" if that is 0.
std::string ClockText(uint64_t realtime_ns);
// One turn in words: "50.1 ms at 20:15:03: fork 48.0 ms (96 %), own-code 2.1 ms", and its evidence.
std::string WorstText(const WorstTurn &turn, uint64_t realtime_ns);

} // namespace forktail::live::watch

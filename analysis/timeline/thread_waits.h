// SPDX-License-Identifier: MIT
// Waits for another thread: their causes are what the other thread did in that time.
#pragma once

#include <vector>

#include "thread_timelines.h"

namespace forktail::analysis
{

// Gives the pieces of *timeline in these intervals (in order, not overlapping, within it) the intervals'
// causes, and stores the other threads.
void TakeForeign(const std::vector<Foreign> &intervals, Timeline *timeline);

// Finds what a serving thread waited for at other threads of its process: spinning for helpers (spins.h), and
// locks that they held (locks.h).
void ResolveOthers(ThreadTimelines *threads, Timeline *timeline);

} // namespace forktail::analysis

// SPDX-License-Identifier: MIT
// Waiting for another thread: what a thread spent on that is what the other one did meanwhile.
#pragma once

#include <vector>

#include "thread_timelines.h"

namespace forktail::analysis
{

// Gives the pieces of *timeline that lie in these intervals (in order, not overlapping, within it) their
// causes, and keeps whose they are.
void TakeForeign(const std::vector<Foreign> &intervals, Timeline *timeline);

// Finds what a serving thread waited for at other threads of its process: where it ran in circles for them
// (spins.h), and locks that they held (locks.h).
void ResolveOthers(ThreadTimelines *threads, Timeline *timeline);

} // namespace forktail::analysis

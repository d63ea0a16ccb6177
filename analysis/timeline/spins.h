// SPDX-License-Identifier: MIT
// A server's main thread that runs in circles until its helpers are done: Redis' io-threads.
// docs/how-it-works/attribution.md, "Waiting for helpers", has the rule and its bound of error.
#pragma once

#include <vector>

#include "thread_timelines.h"

namespace forktail::analysis
{

// Where main threads wait for their helpers, and do nothing else.
inline constexpr const char *kHelperWaits[] = {
    "handleClientsWithPendingWritesUsingThreads", // Redis 6 and 7
    "handleClientsWithPendingReadsUsingThreads",
    "pauseIOThreadsRange", // Redis 8
    "resumeIOThreadsRange",
    "waitForClientIO", // Valkey 8
    "drainIOThreadsQueue",
};

// Intervals in which `main` (the timeline of a process' main thread, as recorded) ran in circles for a helper
// that was kept from running, by that one's causes, or (Cause::IoThread) for one that was at work. In order.
std::vector<Foreign> FindSpins(ThreadTimelines *threads, const Timeline &main);

} // namespace forktail::analysis

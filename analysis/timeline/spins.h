// SPDX-License-Identifier: MIT
// A server's main thread that spins until its helpers finish: Redis' io-threads.
// docs/how-it-works/attribution.md, "Waiting for helpers", has the rule and its error bound.
#pragma once

#include <vector>

#include "thread_timelines.h"

namespace forktail::analysis
{

// Functions in which main threads only wait for their helpers.
inline constexpr const char *kHelperWaits[] = {
    "handleClientsWithPendingWritesUsingThreads", // Redis 6 and 7
    "handleClientsWithPendingReadsUsingThreads",
    "pauseIOThreadsRange", // Redis 8
    "resumeIOThreadsRange",
    "waitForClientIO", // Valkey 8
    "drainIOThreadsQueue",
};

// Intervals in which `main` (the timeline of a process's main thread, as recorded) spun for a helper that
// could not run, by that helper's causes, or (Cause::IoThread) for a helper that was running. In order.
std::vector<Foreign> FindSpins(ThreadTimelines *threads, const Timeline &main);

} // namespace forktail::analysis

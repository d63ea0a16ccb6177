// SPDX-License-Identifier: MIT
// Waits in futex: which lock each was for, and for which threads. The recorder writes down ids, one of them a
// word of the process' memory; whom they mean is decided here.
#pragma once

#include "analysis/run/thread_finder.h"

namespace forktail::analysis
{

// Fills run->lock_waits from spans that are with their threads, and takes from these what NameHolders has
// another meaning for (arg[1]). Old recordings have none.
void FindLockWaits(const ThreadFinder &finder, Run *run);

} // namespace forktail::analysis

// SPDX-License-Identifier: MIT
// Waits for a lock that another thread holds: the lock holder, and what it did in that time.
// docs/how-it-works/attribution.md has the rules and their error bounds.
#pragma once

#include <vector>

#include "thread_timelines.h"

namespace forktail::analysis
{

// What the thread of a timeline waited for in futex at other threads of its process, in waits that overlap
// [from_ns, to_ns): intervals for TakeForeign. A cause other than lock-wait is what delayed the lock holder.
// lock-wait means that the holder ran, or waited for something without a cause. Time in no interval is a
// lock-wait with unknown holder.
std::vector<Foreign> LockForeign(ThreadTimelines *threads, const Timeline &timeline, uint64_t from_ns = 0,
				 uint64_t to_ns = UINT64_MAX);

} // namespace forktail::analysis

// SPDX-License-Identifier: MIT
// Waiting for a lock that another thread holds: whose doing that was, and what that one did meanwhile. The
// rules and their bounds of error are in docs/how-it-works/attribution.md.
#pragma once

#include <vector>

#include "thread_timelines.h"

namespace forktail::analysis
{

// What the thread of a timeline waited for in futex at other threads of its process, of waits that reach into
// [from_ns, to_ns): intervals for TakeForeign. A cause other than lock-wait is what kept the other one from
// going on; lock-wait is that it ran, or waited for nothing that has a name. What is in none is a lock-wait
// of which nobody knows whose it was.
std::vector<Foreign> LockForeign(ThreadTimelines *threads, const Timeline &timeline, uint64_t from_ns = 0,
				 uint64_t to_ns = UINT64_MAX);

} // namespace forktail::analysis

// SPDX-License-Identifier: MIT
// Waits in futex: the lock of each, and the threads that it waited for. The recorder writes ids, one of them
// a word of the process's memory; their meaning is decided here.
#pragma once

#include <vector>

#include "analysis/run/thread_finder.h"

namespace forktail::analysis
{

// A wait with a span, and the threads that it may have waited for.
struct LockWait {
	static constexpr uint32_t kNobody = UINT32_MAX; // unknown, or none

	uint64_t start_ns, end_ns; // blocked: at end_ns the thread was woken
	uint64_t address;	   // of the lock word
	uint32_t span;		   // index into Run::spans
	uint32_t holder; // the lock holder when the wait began, by the lock word: index into Run::threads
	uint32_t waker;	 // likewise, the waker, which was in futex for that word
};

// Whether a span has the lock that it waited for. Spans of old recordings do not.
inline bool IsLockWait(const ft_span &s)
{
	return s.owner == FT_LOCK_WAIT && s.off_cpu && !s.depth && s.arg[0];
}

// A thread's lock waits by start, not overlapping. `thread` is an index into Run::threads.
std::vector<LockWait> FindLockWaits(const Run &run, const ThreadFinder &finder, uint32_t thread);

} // namespace forktail::analysis

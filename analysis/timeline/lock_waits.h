// SPDX-License-Identifier: MIT
// Waits in futex: which lock each was for, and for which threads. The recorder writes down ids, one of them a
// word of the process' memory; whom they mean is decided here.
#pragma once

#include <vector>

#include "analysis/run/thread_finder.h"

namespace forktail::analysis
{

// A wait of span length, with whom it may have been for.
struct LockWait {
	static constexpr uint32_t kNobody = UINT32_MAX; // not known, or nobody

	uint64_t start_ns, end_ns; // blocked: at end_ns the thread was woken
	uint64_t address;	   // of the word that was waited for
	uint32_t span;		   // index into Run::spans
	uint32_t holder; // of the lock when the wait began, by the lock's own words: index into Run::threads
	uint32_t waker;	 // likewise; it was in futex for that word
};

// Whether a span is one that says which lock it was for. Those of old recordings don't.
inline bool IsLockWait(const ft_span &s)
{
	return s.owner == FT_LOCK_WAIT && s.off_cpu && !s.depth && s.arg[0];
}

// A thread's, by start; they don't overlap. `thread` is an index into Run::threads.
std::vector<LockWait> FindLockWaits(const Run &run, const ThreadFinder &finder, uint32_t thread);

} // namespace forktail::analysis

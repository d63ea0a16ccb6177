// SPDX-License-Identifier: MIT
// Locks in words: who waited for which thread's, and what that one did meanwhile.
#pragma once

#include <string>

#include "scene.h"

namespace forktail::analysis
{

// Of a scene whose thread held locks that serving threads waited for: "mc-worker (12) waited 15.0 ms for a
// lock that this thread held". Counted is what the waits were spent on by `cause`. "" if there is no such
// wait.
std::string WaitedForText(const Scene &scene, Cause cause);
// For how long, by the one that waited longest.
uint64_t WaitedForNs(const Scene &scene, Cause cause);
// What is told of lock-wait: the same with what the thread did meanwhile; or of a scene whose own thread
// waited "waited 15.0 ms for a lock held by mc-itemcrawler (13), which was rehashing a dictionary". "" if
// nobody knows for whom.
std::string LockSentence(const Scene &scene);

// Which thread waited longest for a lock of the scene's thread. ns is 0 where no holder is known.
struct LockHold {
	std::string waiter, holder; // "mc-worker (6615)"
	uint64_t ns = 0;
};
LockHold LockHoldIn(const Scene &scene);

} // namespace forktail::analysis

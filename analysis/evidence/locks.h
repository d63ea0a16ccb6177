// SPDX-License-Identifier: MIT
// Describes lock waits: the waiting thread, the lock holder, and what the lock holder did meanwhile.
#pragma once

#include <string>

#include "scene.h"

namespace forktail::analysis
{

// For a scene whose thread is a lock holder: "mc-worker (12) waited 15.0 ms for a
// lock that this thread held". Only wait time attributed to `cause` counts. ""
// without such a wait.
std::string LockWaiterText(const Scene &scene, Cause cause);
// The same wait in nanoseconds.
uint64_t LockWaiterNs(const Scene &scene, Cause cause);
// The sentence for lock-wait: the same with what the lock holder did meanwhile; or, if the scene's own thread
// waited, "waited 15.0 ms for a lock held by mc-itemcrawler (13), which was rehashing a dictionary". "" if
// the lock holder is unknown.
std::string LockSentence(const Scene &scene);

// The thread that waited longest for a lock of the scene's thread; nullptr where no such wait is known.
struct LockHold {
	const Thread *waiter = nullptr;
	uint64_t ns = 0;
};
LockHold LockHoldIn(const Scene &scene);

} // namespace forktail::analysis

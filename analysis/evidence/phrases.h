// SPDX-License-Identifier: MIT
// Parts of sentences that evidence and the first line of an answer share.
#pragma once

#include <string>

#include "scene.h"

namespace forktail::analysis
{

inline uint64_t SpanEnd(const ft_span &s)
{
	return s.start_ns + s.duration_ns;
}

// "write()", the system call a thread was in; "the kernel" if it was there for another reason (number < 0).
std::string SyscallText(const Scene &scene, int number);
// The number of the system call that a span of FT_FSYNC was in.
int SyncCall(const ft_span &s);
// The longest fsync of another thread of the process, or of its child, in [from, to): "; bio_aof_fsync (12)
// was in fdatasync() for 30.0 ms"; "" without one.
std::string OtherFsyncText(const Scene &scene, uint64_t from_ns, uint64_t to_ns);
// Whether a fork's span made a thread, not a process.
bool MadeThread(const Scene &scene, const ft_span &fork);
// The child that a fork made; nullptr if the recording has none.
const Thread *ChildOf(const Scene &scene, const ft_span &fork);
// The child of the scene's process that lived in the interval; nullptr if none did.
const Thread *LiveChild(const Scene &scene);

} // namespace forktail::analysis

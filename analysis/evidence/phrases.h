// SPDX-License-Identifier: MIT
// Phrases used both in evidence and in the first line of an answer.
#pragma once

#include <string>

#include "scene.h"

namespace forktail::analysis
{

inline uint64_t SpanEnd(const ft_span &s)
{
	return s.start_ns + s.duration_ns;
}

// "write()", a system call by number; "the kernel" for waits outside system calls (number < 0).
std::string SyscallText(const Scene &scene, int number);
// The number of the system call that a span of FT_FSYNC was in.
int SyncCall(const ft_span &s);
// The longest fsync of another thread of the process, or of its child, in [from, to): "; bio_aof_fsync (12)
// was in fdatasync() for 30.0 ms"; "" without one.
std::string OtherFsyncText(const Scene &scene, uint64_t from_ns, uint64_t to_ns);
// Whether the call of a fork's span created a thread, not a process.
bool MadeThread(const Scene &scene, const ft_span &fork);
// The child process of a fork; nullptr if it is not in the recording.
const Thread *ChildOf(const Scene &scene, const ft_span &fork);
// A child of the scene's process that existed in the interval; nullptr without one.
const Thread *LiveChild(const Scene &scene);

} // namespace forktail::analysis

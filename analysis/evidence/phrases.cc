// SPDX-License-Identifier: MIT
// See phrases.h.
#include "phrases.h"

#include "common/format/units.h"

namespace forktail::analysis
{

namespace
{

constexpr uint64_t kCloneThread = 0x10000; // CLONE_THREAD
constexpr uint64_t kForkSlack =
    1'000'000; // a child's record may begin up to this long before its fork's span

} // namespace

std::string SyscallText(const Scene &scene, int number)
{
	if (number < 0)
		return "the kernel";
	std::string name = SyscallName(scene.run, number);
	return name.empty() ? "system call " + std::to_string(number) : name + "()";
}

int SyncCall(const ft_span &s)
{
	return s.off_cpu ? s.syscall : static_cast<int>(s.arg[1]);
}

std::string OtherFsyncText(const Scene &scene, uint64_t from_ns, uint64_t to_ns)
{
	const ft_span *longest = nullptr;
	const Thread *whose = nullptr;
	for (uint32_t i : scene.landmarks.fsyncs) {
		const ft_span &s = scene.run.spans[i];
		if (s.start_ns >= to_ns || SpanEnd(s) <= from_ns || s.tid == scene.thread.tid ||
		    (longest && longest->duration_ns >= s.duration_ns))
			continue;
		for (const Thread &t : scene.run.threads) {
			if (t.tid == s.tid &&
			    (t.tgid == scene.thread.tgid || t.parent_tgid == scene.thread.tgid)) {
				longest = &s;
				whose = &t;
			}
		}
	}
	if (!longest)
		return "";
	return "; " + (whose->role.empty() ? whose->comm : whose->role) + " (" + std::to_string(whose->tid) +
	       ") was in " + SyscallText(scene, SyncCall(*longest)) + " for " +
	       common::FormatDuration(longest->duration_ns);
}

// Decided by the child's record. If its event was dropped, by clone's flags; clone3 passes none in registers.
bool MadeThread(const Scene &scene, const ft_span &fork)
{
	for (const Thread &t : scene.run.threads)
		if (t.tid == fork.arg[0] && t.start_ns + kForkSlack >= fork.start_ns &&
		    t.start_ns <= SpanEnd(fork))
			return t.tgid == scene.thread.tgid;
	return fork.arg[1] & kCloneThread;
}

const Thread *ChildOf(const Scene &scene, const ft_span &fork)
{
	for (const Thread &t : scene.run.threads)
		if (t.tid == fork.arg[0] && (t.flags & FT_THREAD_CHILD))
			return &t;
	return nullptr;
}

const Thread *LiveChild(const Scene &scene)
{
	for (const Thread &t : scene.run.threads)
		if ((t.flags & FT_THREAD_CHILD) && (t.flags & FT_THREAD_MAIN) &&
		    t.parent_tgid == scene.thread.tgid && t.start_ns < scene.to_ns &&
		    t.end_ns > scene.from_ns)
			return &t;
	return nullptr;
}

} // namespace forktail::analysis

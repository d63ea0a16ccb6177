// SPDX-License-Identifier: MIT
// Rules for kernel stacks. The kernel omits the scheduler's and the locks' functions from a blocked thread's
// stack, so it begins with the function that took the lock. A function identifies a kind of lock only if it
// takes no other kind.
#include "waits.h"

#include <algorithm>
#include <string_view>

namespace forktail::analysis
{

namespace
{

// Functions that take their own process's mmap lock, Linux 5.10 to 6.18. System calls are without the
// kernel's prefix. Functions that take another process's lock (ptrace, /proc/PID/maps) are not listed.
constexpr std::string_view kTakesMmapLock[] = {
    // page faults
    "lock_mm_and_find_vma",
    "do_user_addr_fault",
    "exc_page_fault",
    "do_page_fault",
    "expand_stack",
    "mmap_read_lock_maybe_expand",
    // mappings
    "vm_mmap_pgoff",
    "__vm_munmap",
    "vm_munmap",
    "vm_brk_flags",
    "sys_brk",
    "do_mremap",
    "sys_mremap",
    "sys_remap_file_pages",
    "do_mprotect_pkey",
    "do_shmat",
    "ksys_shmdt",
    // advice, locking into memory, policies
    "do_madvise",
    "madvise_lock",
    "madvise_do_behavior",
    "madvise_vma_behavior",
    "do_mlock",
    "sys_munlock",
    "sys_mlockall",
    "sys_munlockall",
    "sys_msync",
    "sys_mincore",
    "sys_prctl",
    "do_mbind",
    // the kernel accesses the process's pages
    "__mm_populate",
    "faultin_page_range",
    "__get_user_pages_locked",
    "get_user_pages_unlocked",
    "__gup_longterm_locked",
    "gup_fast_fallback",
    "fixup_user_fault",
    // begin and end of a process
    "dup_mmap",
    "exit_mm",
    "exit_mmap",
};

// Without the offset, the compiler's suffix and the kernel's prefixes of system calls:
// "__do_sys_brk.isra.0+0x1f" is sys_brk.
std::string_view FunctionName(std::string_view frame)
{
	std::string_view name = frame.substr(0, frame.find_first_of("+."));
	for (std::string_view prefix : {"__x64_sys_", "__arm64_sys_", "__do_sys_", "__se_sys_"})
		if (name.substr(0, prefix.size()) == prefix)
			return name.substr(prefix.size() - 4);
	return name;
}

// The kernel usually omits these.
bool IsLocking(std::string_view name)
{
	for (std::string_view prefix : {"schedule", "__schedule", "rwsem_down_", "down_read", "down_write"})
		if (name.substr(0, prefix.size()) == prefix)
			return true;
	return false;
}

} // namespace

Cause CauseOfStack(const std::vector<std::string> &stack)
{
	for (const std::string &frame : stack) {
		std::string_view name = FunctionName(frame);
		if (IsLocking(name))
			continue;
		bool takes = std::find(std::begin(kTakesMmapLock), std::end(kTakesMmapLock), name) !=
			     std::end(kTakesMmapLock);
		return takes ? Cause::MmapLock : Cause::Unknown;
	}
	return Cause::Unknown;
}

std::string StackText(const Detail &detail, size_t most)
{
	std::string text;
	size_t shown = 0;
	for (const std::string &frame : detail.stack) {
		std::string_view name = std::string_view(frame).substr(0, frame.find('+'));
		if (name == "__schedule" || name == "schedule" || name == "io_schedule" ||
		    name == "schedule_timeout")
			continue;
		if (shown++ == most)
			break;
		text += shown > 1 ? " < " : "";
		text += name;
	}
	return text;
}

bool WaitsForPeer(const Run &run, const Thread &thread, const ft_span &s)
{
	if (s.owner == FT_PEER_WAIT)
		return true;
	if (!s.off_cpu || s.depth || (s.owner != FT_IDLE && s.owner != FT_NETWORK))
		return false;
	const ft_span *first = run.iterations.data() + thread.first_iteration,
		      *end = first + thread.iteration_count;
	const ft_span *after =
	    std::partition_point(first, end, [&](const ft_span &i) { return i.start_ns <= s.start_ns; });
	if (after == first || s.start_ns + s.duration_ns > after[-1].start_ns + after[-1].duration_ns)
		return false;
	const std::string call = SyscallName(run, s.syscall);
	return call == "poll" || call == "ppoll" || call == "select" || call == "pselect6" ||
	       (s.owner == FT_NETWORK && !call.starts_with("accept"));
}

Waits::Waits(const Run &run) : run_(run)
{
	causes_.reserve(run.details.size());
	for (const Detail &detail : run.details)
		causes_.push_back(CauseOfStack(detail.stack));
}

} // namespace forktail::analysis

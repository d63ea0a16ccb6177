// SPDX-License-Identifier: MIT
// Rules for kernel stacks. The kernel leaves the scheduler's functions out of a blocked thread's stack, those
// of its locks among them, so that it begins with whoever took the lock: a function has to take one kind of
// lock only to say which it was.
#include "waits.h"

#include <algorithm>
#include <string_view>

namespace forktail::analysis
{

namespace
{

// Functions that take their own process' mmap lock themselves, Linux 5.10 to 6.18. System calls without what
// the kernel puts before their names. Those that take another process' (ptrace, /proc/PID/maps) are not among
// them.
constexpr std::string_view kTakesMmapLock[] = {
    // page faults
    "lock_mm_and_find_vma",
    "do_user_addr_fault",
    "exc_page_fault",
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
    // the kernel touches the process' pages
    "__mm_populate",
    "faultin_page_range",
    "__get_user_pages_locked",
    "get_user_pages_unlocked",
    "__gup_longterm_locked",
    "gup_fast_fallback",
    "fixup_user_fault",
    // a process' begin and end
    "dup_mmap",
    "exit_mm",
    "exit_mmap",
};

// Without offset, the compiler's suffix and the kernel's prefixes of system calls: "__do_sys_brk.isra.0+0x1f"
// is sys_brk.
std::string_view FunctionName(std::string_view frame)
{
	std::string_view name = frame.substr(0, frame.find_first_of("+."));
	for (std::string_view prefix : {"__x64_sys_", "__do_sys_", "__se_sys_"})
		if (name.substr(0, prefix.size()) == prefix)
			return name.substr(prefix.size() - 4);
	return name;
}

// Left out by the kernel as a rule.
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

Waits::Waits(const Run &run)
{
	told_.reserve(run.details.size());
	for (const Detail &detail : run.details)
		told_.push_back(CauseOfStack(detail.stack));
}

} // namespace forktail::analysis

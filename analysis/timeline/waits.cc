// SPDX-License-Identifier: MIT
// What a thread waited for: the causes of waits by their kernel stacks, who held the CPU or the lock, and
// the waits for other threads of its process.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "analysis/timeline.h"
#include "common/json.h"

namespace forktail::analysis
{

// Rules for kernel stacks. The kernel omits the scheduler's and the locks' functions from a blocked thread's
// stack, so it begins with the function that took the lock. A function identifies a kind of lock only if it
// takes no other kind.

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

namespace
{

// Functions that wait for one thing only, by the beginning of their name, Linux 5.10 to 6.18. `first`: the
// function takes several locks, but only one that shows as the innermost function.
struct WaitRule {
	const char *function;
	bool first;
	const char *reason;
};

constexpr const char *kFileLock = "a file lock that another process held",
		     *kJournalCommit = "a commit of the file system's journal",
		     *kJournal = "a transaction of the file system's journal",
		     *kXfsLog = "the file system's log (XFS)",
		     *kBtrfs = "a commit of the file system (btrfs)",
		     *kInode = "the file's lock (inode), which another thread held",
		     *kDirectory = "the directory's lock, which another thread held",
		     *kFrozenFiles =
			 "its file system, which was frozen (fsfreeze, or a snapshot of the disk)",
		     *kNfs = "the NFS server", *kQueue = "the block device's queue, which was frozen";

constexpr WaitRule kWaitRules[] = {
    {"locks_lock_inode_wait", false, kFileLock},
    {"flock_lock_inode_wait", false, kFileLock},
    {"posix_lock_inode_wait", false, kFileLock},
    {"do_lock_file_wait", false, kFileLock},
    {"fcntl_setlk", false, kFileLock},
    {"jbd2_log_wait_commit", false, kJournalCommit},
    {"jbd2_complete_transaction", false, kJournalCommit},
    {"jbd2_trans_will_send_data_barrier", false, kJournalCommit},
    {"wait_transaction_locked", false, kJournal},
    {"wait_transaction_switching", false, kJournal},
    {"add_transaction_credits", false, kJournal},
    {"xlog_wait", false, kXfsLog},
    {"xlog_force_lsn", false, kXfsLog},
    {"xfs_log_force", false, kXfsLog},
    {"xlog_grant_head_wait", false, kXfsLog},
    {"btrfs_commit_transaction", false, kBtrfs},
    {"wait_for_commit", false, kBtrfs},
    {"wait_current_trans", false, kBtrfs},
    {"wait_log_commit", false, kBtrfs},
    {"balance_dirty_pages", false, "the kernel to write back dirty pages, of which there were too many"},
    {"request_wait_answer", false, "the process that serves the file system (FUSE)"},
    {"rpc_wait_bit_killable", false, kNfs},
    {"nfs_wait_bit_killable", false, kNfs},
    {"wbt_wait", false, "the block device's write throttling"},
    {"blk_queue_enter", false, kQueue},
    {"__bio_queue_enter", false, kQueue},
    {"blkdev_issue_flush", false, "a flush of the block device's cache"},
    {"sb_start_write", false, kFrozenFiles},
    {"__sb_start_write", false, kFrozenFiles},
    {"anon_pipe_write", false, "space in the pipe"},
    {"pipe_write", false, "space in the pipe"},
    {"n_tty_write", false, "the terminal"},
    {"wait_for_partner", false, "another process to open the FIFO"},
    {"ext4_buffered_write_iter", true, kInode},
    {"ext4_dio_write_iter", true, kInode},
    {"generic_file_write_iter", true, kInode},
    {"xfs_ilock", true, kInode},
    {"btrfs_inode_lock", true, kInode},
    {"f2fs_file_write_iter", true, kInode},
    {"lookup_slow", true, kDirectory},
    {"open_last_lookups", true, kDirectory},
    {"filename_create", true, kDirectory},
    {"do_unlinkat", true, kDirectory},
    {"lock_rename", true, kDirectory},
    {"iterate_dir", true, kDirectory},
};

// Functions that wait for a frozen file system, where they call one of these. Both are compiled into their
// callers.
constexpr std::string_view kPercpuLock[] = {"percpu_rwsem_wait", "__percpu_down_read"};
constexpr std::string_view kStartsWrite[] = {"vfs_write",
					     "do_iter_readv_writev",
					     "do_iter_write",
					     "vfs_iter_write",
					     "vfs_writev",
					     "vfs_fallocate",
					     "do_sys_ftruncate",
					     "do_ftruncate",
					     "vfs_truncate",
					     "do_sys_truncate",
					     "mnt_want_write",
					     "mnt_want_write_file",
					     "io_write",
					     "aio_write",
					     "filemap_page_mkwrite",
					     "ext4_page_mkwrite",
					     "xfs_filemap_fault",
					     "sb_start_write",
					     "__sb_start_write",
					     "ext4_journal_start_sb",
					     "__ext4_journal_start_sb",
					     "ext4_evict_inode"};

bool IsOneOf(std::string_view name, std::span<const std::string_view> all)
{
	return std::ranges::find(all, name) != all.end();
}

} // namespace

std::string WaitReason(const std::vector<std::string> &stack)
{
	bool first = true, percpu = false;
	for (const std::string &frame : stack) {
		const std::string_view name = FunctionName(frame);
		if (IsLocking(name))
			continue;
		if (percpu && IsOneOf(name, kStartsWrite))
			return kFrozenFiles;
		percpu = IsOneOf(name, kPercpuLock);
		for (const WaitRule &rule : kWaitRules)
			if (name.starts_with(rule.function) && (first || !rule.first))
				return rule.reason;
		first &= percpu;
	}
	return "";
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

// Pieces are cut at the bounds of such intervals, and their sums are recomputed. The timeline of a thread
// that waits for no other, as in a server of one thread, is not changed.

void TakeForeign(const std::vector<Foreign> &intervals, Timeline *t)
{
	if (intervals.empty() || t->empty())
		return;
	std::vector<Piece> pieces;
	pieces.reserve(t->pieces.size() + 2 * intervals.size());
	size_t next = 0;
	for (size_t i = 0; i + 1 < t->pieces.size(); i++) {
		Piece piece = t->pieces[i];
		const uint64_t end_ns = t->pieces[i + 1].start_ns;
		while (piece.start_ns < end_ns) {
			while (next < intervals.size() && intervals[next].end_ns <= piece.start_ns)
				next++;
			if (next == intervals.size() || intervals[next].start_ns >= end_ns) {
				pieces.push_back(piece);
				break;
			}
			const Foreign &f = intervals[next];
			if (piece.start_ns < f.start_ns) {
				pieces.push_back(piece);
				piece.start_ns = f.start_ns;
			}
			pieces.push_back({piece.start_ns, piece.span, kNoMix, f.cause});
			piece.start_ns = std::min(end_ns, f.end_ns);
		}
	}
	pieces.push_back(t->pieces.back());
	t->pieces = std::move(pieces);
	t->foreign.insert(t->foreign.end(), intervals.begin(), intervals.end());
	std::sort(t->foreign.begin(), t->foreign.end(),
		  [](const Foreign &a, const Foreign &b) { return a.start_ns < b.start_ns; });
	IndexTimeline(t);
}

void ResolveOthers(ThreadTimelines *threads, Timeline *timeline)
{
	TakeForeign(FindSpins(threads, *timeline), timeline);
	TakeForeign(LockForeign(threads, *timeline), timeline);
}

// A wait was for one CPU. Its holders are the CPU slices that overlap it, each with its part of the wait;
// several slices of a task are added.

namespace
{

bool IsKsoftirqd(const ft_cpu_slice &slice)
{
	constexpr char kKsoftirqd[] = "ksoftirqd/";
	return strncmp(slice.comm.raw, kKsoftirqd, strlen(kKsoftirqd)) == 0;
}

// Calls see(slice, its ns) for the slices that overlap [from_ns, to_ns), the last one first.
template <class See>
void EachSlice(std::span<const ft_cpu_slice> slices, uint64_t from_ns, uint64_t to_ns, const See &see)
{
	auto slice = std::partition_point(slices.begin(), slices.end(),
					  [&](const ft_cpu_slice &t) { return t.start_ns < to_ns; });
	while (from_ns < to_ns && slice != slices.begin() && (--slice)->end_ns > from_ns)
		see(*slice, std::min(slice->end_ns, to_ns) - std::max(slice->start_ns, from_ns));
}

// The slices of the CPU for which an off-CPU span waited.
std::span<const ft_cpu_slice> SlicesOf(const Run &run, const ft_span &wait)
{
	if (!wait.off_cpu || !wait.queue_cpu)
		return {};
	const auto cpu = static_cast<uint16_t>(wait.queue_cpu - 1);
	// Not equal_range(), whose result clang 14 cannot compile (script/fuzz).
	const auto first = std::ranges::lower_bound(run.cpu_slices, cpu, {}, &ft_cpu_slice::cpu);
	const auto last = std::ranges::upper_bound(run.cpu_slices, cpu, {}, &ft_cpu_slice::cpu);
	return {first, last};
}

std::vector<CpuHolder> HoldersOf(const Run &run, const ft_span &wait)
{
	return CpuHolders(SlicesOf(run, wait), wait.start_ns + wait.blocked_ns,
			  wait.start_ns + wait.duration_ns);
}

} // namespace

std::vector<CpuHolder> CpuHolders(std::span<const ft_cpu_slice> slices, uint64_t from_ns, uint64_t to_ns)
{
	std::vector<CpuHolder> holders;
	EachSlice(slices, from_ns, to_ns, [&](const ft_cpu_slice &slice, uint64_t ns) {
		const auto known = std::ranges::find(holders, slice.tid, &CpuHolder::tid);
		if (known != holders.end())
			known->ns += ns;
		else if (ns)
			holders.push_back({slice.tid, ns, &slice});
	});
	std::ranges::sort(holders, [](const CpuHolder &a, const CpuHolder &b) {
		return a.ns != b.ns ? a.ns > b.ns : a.slice > b.slice;
	});
	return holders;
}

bool IsDeferred(const std::vector<CpuHolder> &holders, uint64_t wait_ns)
{
	return !holders.empty() && holders[0].ns > wait_ns / 2 && IsKsoftirqd(*holders[0].slice);
}

WaitHolder HolderOf(const Run &run, const ft_span &wait)
{
	if (!wait.off_cpu)
		return {};
	WaitHolder holder;
	holder.deferred = wait.flags & FT_SPAN_KSOFTIRQD;
	if (const auto holders = HoldersOf(run, wait); !holders.empty())
		return {holders[0].tid, std::min<uint64_t>(holders[0].ns, UINT32_MAX),
			holder.deferred || IsDeferred(holders, wait.runnable_ns),
			common::VisibleName(holders[0].slice->comm)};
	if (!IsLockWait(wait)) {
		holder.tid = static_cast<uint32_t>(wait.arg[1]);
		holder.ns = wait.arg[1] >> 32;
		holder.name = DetailOf(run, wait).name;
	}
	return holder;
}

std::vector<WaitHolder> WaitHolders(const Run &run, const ft_span &wait, uint64_t from_ns, uint64_t to_ns)
{
	from_ns = std::max(from_ns, wait.start_ns + wait.blocked_ns);
	to_ns = std::min(to_ns, wait.start_ns + wait.duration_ns);
	std::vector<WaitHolder> holders;
	for (const CpuHolder &holder : CpuHolders(SlicesOf(run, wait), from_ns, to_ns))
		holders.push_back({holder.tid, holder.ns, false, common::VisibleName(holder.slice->comm)});
	if (const WaitHolder longest = HolderOf(run, wait); holders.empty() && longest.tid && from_ns < to_ns)
		holders.push_back({longest.tid, std::min(longest.ns, to_ns - from_ns), false, longest.name});
	return holders;
}

Cause WaitCauseOf(const Run &run, const ft_span &wait)
{
	if (wait.flags & FT_SPAN_THROTTLED)
		return Cause::CpuQuota;
	// There are many spans, and ksoftirqd is rarely a holder.
	bool seen = false;
	EachSlice(SlicesOf(run, wait), wait.start_ns + wait.blocked_ns, wait.start_ns + wait.duration_ns,
		  [&](const ft_cpu_slice &slice, uint64_t) { seen |= IsKsoftirqd(slice); });
	return seen && IsDeferred(HoldersOf(run, wait), wait.runnable_ns) ? Cause::SoftirqDeferred
									  : WaitCauseOf(wait.flags);
}

std::string NameOf(const Run &run, const ft_span &span)
{
	const std::string &name = DetailOf(run, span).name;
	return name.empty() && span.queue_cpu ? HolderOf(run, span).name : name;
}

// From a wait in futex to the thread at fault. The waker held the lock before the wait ended, at least since
// its own wait for the same lock ended. Before that the waker of that wait held it, and so on. A lock goes to
// its waiters in order, or to a thread that takes it while it is free. So a waker that did not wait itself
// held the lock all the time.
//
// A condition has no holder: the waker is the thread that was waited for, except for the time in which it
// waited for events or work itself.

namespace
{

// Steps from holder to holder, of the same lock or of a lock that a holder waits for in turn.
constexpr int kDepth = 4;
constexpr uint32_t kNobody = LockWait::kNobody;

// Whether a holder could not continue in this piece. A voluntary sleep does not count.
bool IsDelayed(const Piece &p)
{
	return p.span != kNoSpan && IsStall(p.cause) && p.cause != Cause::Sleep;
}

class Search
{
public:
	Search(ThreadTimelines *threads, uint32_t waiting) : threads_(*threads), waiting_(waiting) {}
	// Explains [from, to) of a wait. `otherwise`: the thread to blame if nothing is found.
	void Wait(const LockWait &wait, uint64_t from_ns, uint64_t to_ns, int depth, uint32_t otherwise);

	std::vector<Foreign> found;

private:
	// Adds what a thread did in [from, to) while others waited for it.
	void Doing(uint32_t thread, uint64_t from_ns, uint64_t to_ns, bool held, int depth,
		   uint32_t otherwise);
	void Add(uint64_t from_ns, uint64_t to_ns, uint32_t thread, Cause cause);
	const LockWait *Last(uint32_t thread, uint64_t address, uint64_t from_ns, uint64_t to_ns);
	const LockWait *OfSpan(uint32_t thread, uint32_t span);

	ThreadTimelines &threads_;
	const uint32_t waiting_;
};

void Search::Add(uint64_t from_ns, uint64_t to_ns, uint32_t thread, Cause cause)
{
	if (from_ns >= to_ns || thread == kNobody)
		return;
	if (!found.empty() && found.back().end_ns == from_ns && found.back().thread == thread &&
	    found.back().cause == cause)
		found.back().end_ns = to_ns;
	else
		found.push_back({from_ns, to_ns, thread, cause});
}

// The last of a thread's waits for a lock that ended in (from, to].
const LockWait *Search::Last(uint32_t thread, uint64_t address, uint64_t from_ns, uint64_t to_ns)
{
	const std::vector<LockWait> &waits = threads_.LockWaitsOf(thread);
	// A thread's waits do not overlap, so ends are in the same order as starts.
	auto end = std::partition_point(waits.begin(), waits.end(),
					[&](const LockWait &w) { return w.end_ns <= to_ns; });
	for (; end != waits.begin() && end[-1].end_ns > from_ns; end--)
		if (end[-1].address == address)
			return &end[-1];
	return nullptr;
}

const LockWait *Search::OfSpan(uint32_t thread, uint32_t span)
{
	const std::vector<LockWait> &waits = threads_.LockWaitsOf(thread);
	const auto wait = std::ranges::lower_bound(waits, span, {}, &LockWait::span);
	return wait != waits.end() && wait->span == span ? &*wait : nullptr;
}

void Search::Wait(const LockWait &wait, uint64_t from_ns, uint64_t to_ns, int depth, uint32_t otherwise)
{
	// A wait without a waker timed out: the holder at its begin still has the lock.
	uint32_t who = wait.waker != kNobody ? wait.waker : wait.holder;
	if (who == kNobody || who == waiting_ || depth == kDepth) {
		Add(from_ns, to_ns, otherwise, Cause::LockWait);
		return;
	}
	const bool throughout = wait.holder == who;
	const LockWait *own = throughout ? nullptr : Last(who, wait.address, from_ns, to_ns);
	uint64_t since_ns = own ? own->end_ns : from_ns;
	if (own)
		Wait(*own, from_ns, since_ns, depth + 1, otherwise);
	Doing(who, since_ns, to_ns, own || wait.holder != kNobody, depth, otherwise);
}

void Search::Doing(uint32_t thread, uint64_t from_ns, uint64_t to_ns, bool held, int depth,
		   uint32_t otherwise)
{
	const Timeline &t = threads_.Of(thread);
	uint64_t from = std::max(from_ns, t.start_ns()), to = std::min(to_ns, t.end_ns());
	if (t.empty() || from >= to) {
		Add(from_ns, to_ns, otherwise, Cause::LockWait);
		return;
	}
	Add(from_ns, from, otherwise, Cause::LockWait);
	for (uint32_t i = PieceAt(t, from); t.pieces[i].start_ns < to; i++) {
		const Piece &p = t.pieces[i];
		uint64_t start = std::max(from, p.start_ns), end = std::min(to, t.pieces[i + 1].start_ns);
		const LockWait *next =
		    p.cause == Cause::LockWait && p.span != kNoSpan ? OfSpan(thread, p.span) : nullptr;
		if (next)
			Wait(*next, start, end, depth + 1, held ? thread : otherwise);
		else if (p.cause == Cause::Idle && !held)
			Add(start, end, otherwise, Cause::LockWait);
		else
			Add(start, end, thread, IsDelayed(p) ? p.cause : Cause::LockWait);
	}
	Add(to, to_ns, otherwise, Cause::LockWait);
}

} // namespace

std::vector<Foreign> LockForeign(ThreadTimelines *threads, const Timeline &timeline, uint64_t from_ns,
				 uint64_t to_ns)
{
	Search search(threads, timeline.thread);
	const std::vector<LockWait> &waits = threads->LockWaitsOf(timeline.thread);
	auto wait = std::partition_point(waits.begin(), waits.end(),
					 [&](const LockWait &w) { return w.end_ns <= from_ns; });
	for (; wait != waits.end() && wait->start_ns < to_ns; wait++) {
		if (wait->start_ns >= wait->end_ns || wait->start_ns < timeline.start_ns() ||
		    wait->end_ns > timeline.end_ns())
			continue;
		const Piece &piece = timeline.pieces[PieceAt(timeline, wait->start_ns)];
		if (piece.span == wait->span && piece.cause == Cause::LockWait)
			search.Wait(*wait, wait->start_ns, wait->end_ns, 0, kNobody);
	}
	return std::move(search.found);
}

// Only a thread of the same process that lived at that time counts as lock holder or waker. Shared memory of
// processes may hold locks too, but another process is not the server.

namespace
{

// The thread of `waiting`'s process that had this id then, or kNobody. A thread does not wait for itself.
uint32_t MateAt(const Run &run, const ThreadFinder &finder, const Thread &waiting, uint32_t tid,
		uint64_t t_ns)
{
	int64_t found = tid && tid != waiting.tid ? finder.Find(run.threads, tid, t_ns) : -1;
	if (found < 0)
		return LockWait::kNobody;
	const Thread &t = run.threads[static_cast<size_t>(found)];
	bool lived = t.start_ns <= t_ns && (t.end_ns == 0 || t_ns <= t.end_ns);
	return lived && t.tgid == waiting.tgid ? static_cast<uint32_t>(found) : LockWait::kNobody;
}

} // namespace

std::vector<LockWait> FindLockWaits(const Run &run, const ThreadFinder &finder, uint32_t thread)
{
	std::vector<LockWait> waits;
	const Thread &t = run.threads[thread];
	for (size_t i = t.first_span; i < t.first_span + t.span_count; i++) {
		const ft_span &s = run.spans[i];
		if (!IsLockWait(s))
			continue;
		const uint64_t end_ns = s.start_ns + s.blocked_ns;
		waits.push_back({s.start_ns, end_ns, s.arg[0], static_cast<uint32_t>(i),
				 MateAt(run, finder, t, static_cast<uint32_t>(s.arg[1]), s.start_ns),
				 MateAt(run, finder, t, static_cast<uint32_t>(s.arg[1] >> 32), end_ns)});
	}
	return waits;
}

} // namespace forktail::analysis

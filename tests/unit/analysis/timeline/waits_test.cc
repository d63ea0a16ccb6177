// SPDX-License-Identifier: MIT
// Kernel stacks that show what a blocked thread waited for.
#include "analysis/timeline.h"
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

using namespace forktail::analysis;
using namespace forktail::test;

TEST_CASE("a thread blocked in taking the mmap lock waits for it")
{
	// As on Linux 6.18: without the lock's own functions.
	CHECK(CauseOfStack({"vm_mmap_pgoff+0xe0", "do_syscall_64+0x71"}) == Cause::MmapLock);
	CHECK(CauseOfStack({"lock_mm_and_find_vma+0x9d", "do_user_addr_fault+0x1c0",
			    "exc_page_fault+0x6c"}) == Cause::MmapLock);
	CHECK(CauseOfStack({"__do_sys_brk.isra.0+0x52", "do_syscall_64+0x71"}) == Cause::MmapLock);
	// With them.
	CHECK(CauseOfStack({"__schedule+0x2e", "schedule+0x1f", "schedule_preempt_disabled+0x15",
			    "rwsem_down_write_slowpath+0x201", "down_write_killable+0x6b",
			    "__vm_munmap+0x66"}) == Cause::MmapLock);
}

TEST_CASE("the reason of a wait is named only by a function that waits for nothing else")
{
	const std::string inode = "the file's lock (inode), which another thread held",
			  frozen = "its file system, which was frozen (fsfreeze, or a snapshot of the disk)";
	struct Row {
		std::vector<std::string> stack;
		std::string reason;
	};
	const Row rows[] = {
	    {{"locks_lock_inode_wait+0x1", "__do_sys_flock+0x2"}, "a file lock that another process held"},
	    {{"jbd2_log_wait_commit+0x1", "ext4_sync_file+0x2"}, "a commit of the file system's journal"},
	    {{"schedule+0x1", "rwsem_down_write_slowpath+0x2", "ext4_buffered_write_iter+0x3"}, inode},
	    {{"ext4_buffered_write_iter.isra.0+0x3"}, inode},
	    {{"folio_wait_bit_common+0x1", "ext4_buffered_write_iter+0x3"}, ""}, // it holds the lock
	    {{"percpu_rwsem_wait+0x1", "__percpu_down_read+0x1", "vfs_write+0x1"}, frozen},
	    {{"percpu_rwsem_wait+0x1", "__percpu_down_read+0x1", "cgroup_post_fork+0x1"}, ""},
	    {{"io_schedule+0x1", "folio_wait_bit_common+0x1"}, ""},
	    {{}, ""},
	};
	for (const Row &row : rows)
		CHECK(WaitReason(row.stack) == row.reason);
}

TEST_CASE("other waits of the same calls and faults are not for the mmap lock")
{
	CHECK(CauseOfStack({}) == Cause::Unknown);
	CHECK(CauseOfStack({"down_read+0x10"}) == Cause::Unknown);
	CHECK(CauseOfStack({"folio_wait_bit_common+0x134", "filemap_fault+0x88", "exc_page_fault+0x6c"}) ==
	      Cause::Unknown);
	CHECK(CauseOfStack({"unlink_anon_vmas+0x4a", "free_pgtables+0x9b", "__vm_munmap+0xb4"}) ==
	      Cause::Unknown);
	CHECK(CauseOfStack({"ext4_map_blocks+0x11", "down_read+0x10", "vm_mmap_pgoff+0xe0"}) ==
	      Cause::Unknown);
}

TEST_CASE("a wait for the mmap lock is mmap-lock in a call and in a fault, its run-queue part is not")
{
	RunBuilder b;
	b.Thread(kServer, 0, 1000);
	b.run.details.push_back({"", {"vm_mmap_pgoff+0xe0"}});
	b.run.details.push_back({"", {"lock_mm_and_find_vma+0x9d"}});
	b.run.details.push_back({"", {"pipe_read+0x30"}});
	b.Off(FT_SYSCALL, 100, 180, 200).detail = 1;
	b.Frame(FT_PAGE_ZERO, 300, 500, 0, 100);
	b.Off(FT_FAULT_OTHER, 350, 450, 450, 1).detail = 2;
	b.Off(FT_SYSCALL, 600, 700, 700).detail = 3;
	b.Finish();
	Timeline t = b.Timeline();
	CHECK(Spent(t, Cause::MmapLock, 0, 1000) == 180);
	CHECK(Spent(t, Cause::RunQueue, 0, 1000) == 20);
	CHECK(Spent(t, Cause::PageZero, 0, 1000) == 100);
	CHECK(Spent(t, Cause::Syscall, 0, 1000) == 100);
	Account a = AccountOf(b.run, 0);
	CHECK(a.by_cause[Index(Cause::MmapLock)] == 180);
	CHECK(a.by_cause[Index(Cause::PageZero)] == 100);
	CHECK(a.by_cause[Index(Cause::Syscall)] == 100);
}

TEST_CASE(
    "a wait in poll or on a socket inside an event-loop iteration is for a peer, also in old recordings")
{
	RunBuilder b;
	b.Thread(kServer, 0, 1000 * ms);
	b.Frame(FT_ITERATION, 100 * ms, 500 * ms);
	b.Off(FT_IDLE, 150 * ms, 350 * ms, 360 * ms).syscall = 7;    // poll
	b.Off(FT_NETWORK, 400 * ms, 450 * ms, 450 * ms).syscall = 0; // read
	b.Off(FT_IDLE, 500 * ms, 600 * ms, 600 * ms).syscall = 232;  // epoll_wait
	b.Off(FT_IDLE, 700 * ms, 800 * ms, 800 * ms).syscall = 7;    // poll, outside
	b.Off(FT_PEER_WAIT, 900 * ms, 950 * ms, 950 * ms).syscall = 7;
	b.Finish();
	Timeline t = b.Timeline();
	CHECK(Spent(t, Cause::PeerWait, 0, 1000 * ms) == 300 * ms);
	CHECK(Spent(t, Cause::RunQueue, 0, 1000 * ms) == 10 * ms);
	CHECK(Spent(t, Cause::Idle, 0, 1000 * ms) == 200 * ms);
	CHECK(Spent(t, Cause::Network, 0, 1000 * ms) == 0);
	CHECK(AccountOf(b.run, 0).by_cause[Index(Cause::PeerWait)] == 300 * ms);
}

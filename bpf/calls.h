/* SPDX-License-Identifier: GPL-2.0-only */
/* What a system call waits for, by its number. A thread that is blocked outside of frames is classified by
 * its system call. That has to happen in the kernel, because tallies are summed there. */
#ifndef FORKTAIL_BPF_CALLS_H
#define FORKTAIL_BPF_CALLS_H

#include "machine/machine.h"
#include "types.h"

enum call_class {
	CALL_OTHER,
	CALL_IDLE,
	CALL_LOCK,
	CALL_SLEEP,
	CALL_READ,
	CALL_WRITE,
	CALL_META,
	CALL_SOCKET,
	CALL_ACCEPT,
	CALL_FORK,
	CALL_SYNC
};

static __always_inline bool waits_for_epoll(s64 nr)
{
	return nr == __NR_epoll_wait || nr == __NR_epoll_pwait || nr == __NR_epoll_pwait2;
}

/* The event loop's wait: an iteration ends where it begins. */
static __always_inline bool waits_for_events(s64 nr)
{
	return waits_for_epoll(nr) || nr == __NR_io_uring_enter;
}

/* io_uring_enter first executes submitted operations, and may then wait for earlier ones. The thread's state
 * shows in which of the two it is blocked: only the second is interruptible by a signal. */
static __always_inline bool works_on_ring(s64 nr, u32 state)
{
	enum { TASK_UNINTERRUPTIBLE = 2 };
	return nr == __NR_io_uring_enter && state & TASK_UNINTERRUPTIBLE;
}

/* Waits for the descriptors of an array, or of sets up to a number. */
static __always_inline bool call_polls(s64 nr)
{
	return nr == __NR_poll || nr == __NR_ppoll;
}

static __always_inline bool call_selects(s64 nr)
{
	return nr == __NR_select || nr == __NR_pselect6;
}

static __always_inline bool call_forks(s64 nr)
{
	return nr == __NR_clone || nr == __NR_clone3 || nr == __NR_fork || nr == __NR_vfork;
}

static __always_inline enum call_class file_call_class(s64 nr)
{
	switch (nr) {
	case __NR_read:
	case __NR_pread64:
	case __NR_readv:
	case __NR_preadv:
	case __NR_preadv2:
	case __NR_sendfile:
	case __NR_readahead:
		return CALL_READ;
	case __NR_write:
	case __NR_pwrite64:
	case __NR_writev:
	case __NR_pwritev:
	case __NR_pwritev2:
	case __NR_ftruncate:
	case __NR_fallocate:
		return CALL_WRITE;
	case __NR_open:
	case __NR_openat:
	case __NR_close:
	case __NR_stat:
	case __NR_fstat:
	case __NR_lstat:
	case __NR_newfstatat:
	case __NR_statx:
	case __NR_rename:
	case __NR_renameat:
	case __NR_renameat2:
	case __NR_unlink:
	case __NR_unlinkat:
	case __NR_truncate:
	case __NR_getdents:
	case __NR_getdents64:
		return CALL_META;
	default:
		return CALL_OTHER;
	}
}

static __always_inline enum call_class call_class(s64 nr)
{
	switch (nr) {
	case __NR_poll:
	case __NR_ppoll:
	case __NR_select:
	case __NR_pselect6:
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
	case __NR_epoll_pwait2:
	case __NR_io_uring_enter:
		return CALL_IDLE;
	case __NR_futex:
	case __NR_futex_waitv:
		return CALL_LOCK;
	case __NR_pause:
	case __NR_nanosleep:
	case __NR_clock_nanosleep:
		return CALL_SLEEP;
	case __NR_accept:
	case __NR_accept4:
		return CALL_ACCEPT;
	case __NR_connect:
	case __NR_sendto:
	case __NR_recvfrom:
	case __NR_sendmsg:
	case __NR_recvmsg:
	case __NR_sendmmsg:
	case __NR_recvmmsg:
		return CALL_SOCKET;
	case __NR_clone:
	case __NR_clone3:
	case __NR_fork:
	case __NR_vfork:
		return CALL_FORK;
	case __NR_fsync:
	case __NR_fdatasync:
	case __NR_msync:
	case __NR_sync_file_range:
		return CALL_SYNC;
	default:
		return file_call_class(nr);
	}
}

#endif

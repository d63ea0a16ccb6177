/* SPDX-License-Identifier: GPL-2.0-only */
/* With `exact`: system calls that are frames (the fork and fsync families), the event loop's iterations, and
 * connections that open and close in them. The actions are here. The loader chooses what triggers them:
 * functions of the kernel (functions.bpf.c) or tracepoints (syscalls.bpf.c). */
#ifndef FORKTAIL_BPF_EXACT_H
#define FORKTAIL_BPF_EXACT_H

#include "state.h" /* first: libbpf's headers need the integer types */

#include "files.h"
#include "iteration.h"

static __always_inline int call_begins(u32 owner, u64 arg0, u64 arg1)
{
	struct thread_state *st = current_state();
	if (!st)
		return 0;
	st->busy = 1;
	u64 now = bpf_ktime_get_ns();
	abandon_all(st, now);
	push(st, now, owner, arg0, arg1);
	st->busy = 0;
	return 0;
}

/* The parent's return from the call. The child returns from it too, but never entered it. */
static __always_inline int fork_ends(s64 ret)
{
	struct thread_state *st = current_state();
	if (!st || !top_is(st, FT_FORK))
		return 0;
	st->busy = 1;
	struct frame *f = top(st);
	if (f && (ret < 0 || !f->arg[0])) /* otherwise sched_process_fork has recorded the child */
		f->arg[0] = (u64)ret;
	pop(st, bpf_ktime_get_ns(), FT_FORK);
	st->busy = 0;
	return 0;
}

static __always_inline int fsync_ends(void)
{
	return frame_ends(current_state(), FT_FSYNC);
}

/* An event-loop iteration ends where the next wait begins. */
static __always_inline int wait_begins(void)
{
	struct thread_state *st = current_state();
	if (!st)
		return 0;
	st->busy = 1;
	u64 now = bpf_ktime_get_ns();
	abandon_all(st, now);
	end_iteration(st, current_task(), now, 0);
	st->busy = 0;
	return 0;
}

static __always_inline int wait_ends(s64 ready)
{
	struct thread_state *st = current_state();
	if (!st)
		return 0;
	begin_iteration(st, current_task(), bpf_ktime_get_ns(), ready > 0 ? (u64)ready : 0);
	return 0;
}

/* Connections that open and close: rare calls of a server except in a connection storm, which is why they are
 * counted. Nearly all sockets that are closed were connections, but not all. */
static __always_inline int accepted(s64 descriptor)
{
	struct thread_state *st = descriptor >= 0 ? current_state() : NULL;
	if (st)
		st->accepted++;
	return 0;
}

static __always_inline int closes(u64 descriptor)
{
	struct thread_state *st = current_state();
	if (!st)
		return 0;
	if (file_kind(file_of(current_task(), descriptor)) == FT_SAMPLE_FILE_SOCKET)
		st->closed++;
	return 0;
}

#endif

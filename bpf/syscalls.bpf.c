/* SPDX-License-Identifier: GPL-2.0-only */
/* With `exact`: system calls that are frames (the fork and fsync families), the event loop's turns, and the
 * connections that came and went in them.
 *
 * One tracepoint of one system call sends every call of every process on a longer way, and a server under
 * load does little else: on a closed loop over a Unix socket that was half of what recording cost. So none is
 * attached unless it is asked for. Without them a fork begins with the first page that it allocates
 * (faults.bpf.c), a turn with the switch to its thread (turn.h), and an fsync is what a thread waits in
 * (sched.bpf.c), as all other calls are.
 */
#include "state.h" /* first: libbpf's headers want the integer types */

#include "files.h"
#include "turn.h"

/* The layout of syscalls:sys_enter_* and sys_exit_* (include/trace/syscall.h's common part and fields). */
struct enter_args {
	u64 common;
	s64 number;
	u64 args[6];
};
struct exit_args {
	u64 common;
	s64 number;
	s64 ret;
};

static __always_inline int begin(u32 owner, u64 arg0, u64 arg1)
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

/* The parent's return from the call; the child comes back from it too, but never entered it. */
static __always_inline int end_fork(s64 ret)
{
	struct thread_state *st = current_state();
	if (!st || !top_is(st, FT_FORK))
		return 0;
	st->busy = 1;
	struct frame *f = top(st);
	if (f && (ret < 0 || !f->arg[0])) /* else sched_process_fork has told which child */
		f->arg[0] = (u64)ret;
	pop(st, bpf_ktime_get_ns(), FT_FORK);
	st->busy = 0;
	return 0;
}

#define FSYNC_CALL(name)                                                                                     \
	SEC("tracepoint/syscalls/sys_enter_" #name)                                                          \
	int enter_##name(struct enter_args *ctx)                                                             \
	{                                                                                                    \
		return begin(FT_FSYNC, ctx->args[0], (u64)ctx->number);                                      \
	}                                                                                                    \
	SEC("tracepoint/syscalls/sys_exit_" #name)                                                           \
	int exit_##name(void *ctx)                                                                           \
	{                                                                                                    \
		return frame_ends(current_state(), FT_FSYNC);                                                \
	}

#define FORK_CALL(name, flags)                                                                               \
	SEC("tracepoint/syscalls/sys_enter_" #name)                                                          \
	int enter_##name(struct enter_args *ctx)                                                             \
	{                                                                                                    \
		return begin(FT_FORK, 0, flags);                                                             \
	}                                                                                                    \
	SEC("tracepoint/syscalls/sys_exit_" #name)                                                           \
	int exit_##name(struct exit_args *ctx)                                                               \
	{                                                                                                    \
		return end_fork(ctx->ret);                                                                   \
	}

FSYNC_CALL(fsync)
FSYNC_CALL(fdatasync)
FSYNC_CALL(msync)
FSYNC_CALL(sync_file_range)
FORK_CALL(clone, ctx->args[0])
FORK_CALL(clone3, 0)
FORK_CALL(fork, 0)
FORK_CALL(vfork, 0)

/* One turn of the event loop ends where the next wait begins. */
static __always_inline int wait_begins(void)
{
	struct thread_state *st = current_state();
	if (!st)
		return 0;
	st->busy = 1;
	u64 now = bpf_ktime_get_ns();
	if (st->depth)
		abandon_all(st, now);
	end_turn(st, current_task(), now, 0);
	st->busy = 0;
	return 0;
}

static __always_inline int wait_ends(s64 ready)
{
	struct thread_state *st = current_state();
	if (!st)
		return 0;
	begin_turn(st, current_task(), bpf_ktime_get_ns(), ready > 0 ? (u64)ready : 0);
	return 0;
}

#define WAIT_CALL(name)                                                                                      \
	SEC("tracepoint/syscalls/sys_enter_" #name)                                                          \
	int enter_##name(void *ctx)                                                                          \
	{                                                                                                    \
		return wait_begins();                                                                        \
	}                                                                                                    \
	SEC("tracepoint/syscalls/sys_exit_" #name)                                                           \
	int exit_##name(struct exit_args *ctx)                                                               \
	{                                                                                                    \
		return wait_ends(ctx->ret);                                                                  \
	}

WAIT_CALL(epoll_wait)
WAIT_CALL(epoll_pwait)
WAIT_CALL(epoll_pwait2)

/* Connections that come and go: rare calls of a server, but for a storm of them, which is what they are
 * counted for. Not every socket that is closed was a connection, but nearly all are. */
static __always_inline int accepted(s64 descriptor)
{
	struct thread_state *st = descriptor >= 0 ? current_state() : NULL;
	if (st)
		st->accepted++;
	return 0;
}

SEC("tracepoint/syscalls/sys_exit_accept")
int exit_accept(struct exit_args *ctx)
{
	return accepted(ctx->ret);
}

SEC("tracepoint/syscalls/sys_exit_accept4")
int exit_accept4(struct exit_args *ctx)
{
	return accepted(ctx->ret);
}

SEC("tracepoint/syscalls/sys_enter_close")
int enter_close(struct enter_args *ctx)
{
	struct thread_state *st = current_state();
	if (!st)
		return 0;
	if (file_kind(file_of(current_task(), ctx->args[0])) == FT_SAMPLE_FILE_SOCKET)
		st->closed++;
	return 0;
}

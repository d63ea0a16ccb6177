/* SPDX-License-Identifier: GPL-2.0-only */
/* With `exact`: system calls that are frames (the fork and fsync families), the event loop's iterations, and
 * connections that open and close in them. One tracepoint of one system call sends every call of every
 * process through a slower path, and a server under load makes little else than calls: in a closed loop over
 * a Unix socket that was half of the cost of recording. So none is attached unless requested. Without them a
 * fork begins with the first page that it allocates (faults.bpf.c), an iteration with the switch to its
 * thread (iteration.h), and an fsync is a wait of the thread (waits.h), like all other calls. */
#include "exact.h"
#include "program.h"

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

#define FSYNC_CALL(name)                                                                                     \
	SEC("tracepoint/syscalls/sys_enter_" #name)                                                          \
	int enter_##name(struct enter_args *ctx)                                                             \
	{                                                                                                    \
		COUNT_RUN(enter_##name);                                                                     \
		return call_begins(FT_FSYNC, ctx->args[0], (u64)ctx->number);                                \
	}                                                                                                    \
	SEC("tracepoint/syscalls/sys_exit_" #name)                                                           \
	int exit_##name(void *ctx)                                                                           \
	{                                                                                                    \
		COUNT_RUN(exit_##name);                                                                      \
		return fsync_ends();                                                                         \
	}

#define FORK_CALL(name, flags)                                                                               \
	SEC("tracepoint/syscalls/sys_enter_" #name)                                                          \
	int enter_##name(struct enter_args *ctx)                                                             \
	{                                                                                                    \
		COUNT_RUN(enter_##name);                                                                     \
		return call_begins(FT_FORK, 0, flags);                                                       \
	}                                                                                                    \
	SEC("tracepoint/syscalls/sys_exit_" #name)                                                           \
	int exit_##name(struct exit_args *ctx)                                                               \
	{                                                                                                    \
		COUNT_RUN(exit_##name);                                                                      \
		return fork_ends(ctx->ret);                                                                  \
	}

FSYNC_CALL(fsync)
FSYNC_CALL(fdatasync)
FSYNC_CALL(msync)
FSYNC_CALL(sync_file_range)
FORK_CALL(clone, ctx->args[0])
FORK_CALL(clone3, 0)
FORK_CALL(fork, 0)
FORK_CALL(vfork, 0)

#define WAIT_CALL(name)                                                                                      \
	SEC("tracepoint/syscalls/sys_enter_" #name)                                                          \
	int enter_##name(void *ctx)                                                                          \
	{                                                                                                    \
		COUNT_RUN(enter_##name);                                                                     \
		return wait_begins();                                                                        \
	}                                                                                                    \
	SEC("tracepoint/syscalls/sys_exit_" #name)                                                           \
	int exit_##name(struct exit_args *ctx)                                                               \
	{                                                                                                    \
		COUNT_RUN(exit_##name);                                                                      \
		return wait_ends(ctx->ret);                                                                  \
	}

WAIT_CALL(epoll_wait)
WAIT_CALL(epoll_pwait)
WAIT_CALL(epoll_pwait2)

SEC("tracepoint/syscalls/sys_exit_accept")
int exit_accept(struct exit_args *ctx)
{
	COUNT_RUN(exit_accept);
	return accepted(ctx->ret);
}

SEC("tracepoint/syscalls/sys_exit_accept4")
int exit_accept4(struct exit_args *ctx)
{
	COUNT_RUN(exit_accept4);
	return accepted(ctx->ret);
}

SEC("tracepoint/syscalls/sys_enter_close")
int enter_close(struct enter_args *ctx)
{
	COUNT_RUN(enter_close);
	return closes(ctx->args[0]);
}

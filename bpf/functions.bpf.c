/* SPDX-License-Identifier: GPL-2.0-only */
/* With `exact`: the actions of exact.h, attached to the functions of system calls by fentry and fexit where
 * the kernel supports it, from 5.13 on. Until 5.12 a kernel may lose track of a sleeping function while its
 * programs are detached. A tracepoint of one system call sends every call of every process through a slower
 * path; these programs affect only their own functions. A child returns from a fork by another path, so
 * nothing here sees it. */
#include "exact.h"
#include "program.h"

#define FSYNC_FUNCTION(name)                                                                                 \
	SEC("fentry/" CALL_FUNCTION(name))                                                                   \
	int TARGETS_PROG(into_##name, struct pt_regs___user *regs)                                           \
	{                                                                                                    \
		return call_begins(FT_FSYNC, BPF_CORE_READ(regs, CALL_ARG0),                                 \
				   BPF_CORE_READ(regs, CALL_NUMBER));                                        \
	}                                                                                                    \
	SEC("fexit/" CALL_FUNCTION(name))                                                                    \
	int TARGETS_PROG(out_of_##name, struct pt_regs___user *regs, s64 ret)                                \
	{                                                                                                    \
		return fsync_ends();                                                                         \
	}

#define FORK_FUNCTION(name, flags)                                                                           \
	SEC("fentry/" CALL_FUNCTION(name))                                                                   \
	int TARGETS_PROG(into_##name, struct pt_regs___user *regs)                                           \
	{                                                                                                    \
		return call_begins(FT_FORK, 0, flags);                                                       \
	}                                                                                                    \
	SEC("fexit/" CALL_FUNCTION(name))                                                                    \
	int TARGETS_PROG(out_of_##name, struct pt_regs___user *regs, s64 ret)                                \
	{                                                                                                    \
		return fork_ends(ret);                                                                       \
	}

#define WAIT_FUNCTION(name)                                                                                  \
	SEC("fentry/" CALL_FUNCTION(name))                                                                   \
	int TARGETS_PROG(into_##name, struct pt_regs___user *regs)                                           \
	{                                                                                                    \
		return wait_begins();                                                                        \
	}                                                                                                    \
	SEC("fexit/" CALL_FUNCTION(name))                                                                    \
	int TARGETS_PROG(out_of_##name, struct pt_regs___user *regs, s64 ret)                                \
	{                                                                                                    \
		return wait_ends(ret);                                                                       \
	}

#define ACCEPT_FUNCTION(name)                                                                                \
	SEC("fexit/" CALL_FUNCTION(name))                                                                    \
	int TARGETS_PROG(out_of_##name, struct pt_regs___user *regs, s64 ret)                                \
	{                                                                                                    \
		return accepted(ret);                                                                        \
	}

FSYNC_FUNCTION(fsync)
FSYNC_FUNCTION(fdatasync)
FSYNC_FUNCTION(msync)
FSYNC_FUNCTION(sync_file_range)
FORK_FUNCTION(clone, BPF_CORE_READ(regs, CALL_ARG0))
FORK_FUNCTION(clone3, 0)
FORK_FUNCTION(fork, 0)
FORK_FUNCTION(vfork, 0)
WAIT_FUNCTION(epoll_wait)
WAIT_FUNCTION(epoll_pwait)
WAIT_FUNCTION(epoll_pwait2)
ACCEPT_FUNCTION(accept)
ACCEPT_FUNCTION(accept4)

SEC("fentry/" CALL_FUNCTION(close))
int TARGETS_PROG(into_close, struct pt_regs___user *regs)
{
	return closes(BPF_CORE_READ(regs, CALL_ARG0));
}

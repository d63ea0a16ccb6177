/* SPDX-License-Identifier: GPL-2.0-only */
/* How many calls a turn of the event loop made: what tells an answer to 5,000 subscribers from one.
 *
 * Reads and writes are never traced. The kernel counts them per task itself (as /proc/PID/io shows them), so
 * the difference of two looks is exact and costs a load each; calls of the send and recv kind are not in it.
 * Accepted connections and closed sockets it doesn't count: those rare calls have programs (syscalls.bpf.c).
 */
#ifndef FORKTAIL_BPF_TURN_H
#define FORKTAIL_BPF_TURN_H

#include "state.h"

/* A kernel without CONFIG_TASK_XACCT doesn't count. */
static __always_inline void read_counts(u64 *reads, u64 *writes)
{
	*reads = *writes = 0;
	if (has_task_storage) {
		struct task_struct *task = bpf_get_current_task_btf();
		if (!bpf_core_field_exists(task->ioac.syscr))
			return;
		*reads = task->ioac.syscr;
		*writes = task->ioac.syscw;
	} else {
		struct task_struct *task = (struct task_struct *)bpf_get_current_task();
		if (!bpf_core_field_exists(task->ioac.syscr))
			return;
		*reads = BPF_CORE_READ(task, ioac.syscr);
		*writes = BPF_CORE_READ(task, ioac.syscw);
	}
}

static __always_inline void count_from_here(struct thread_state *st)
{
	read_counts(&st->reads_before, &st->writes_before);
	st->accepted = st->closed = 0;
	st->counts_calls = 1;
}

static __always_inline u64 at_most_16_bits(u64 n)
{
	return n < 0xffff ? n : 0xffff;
}

/* The calls since then, as an iteration's arg[1] holds them; 0 if nobody saw the turn begin. */
static __always_inline u64 calls_since(struct thread_state *st)
{
	u64 reads, writes;
	if (!st->counts_calls)
		return 0;
	st->counts_calls = 0;
	read_counts(&reads, &writes);
	return at_most_16_bits(reads - st->reads_before) | at_most_16_bits(writes - st->writes_before) << 16 |
	       at_most_16_bits(st->accepted) << 32 | at_most_16_bits(st->closed) << 48;
}

#endif

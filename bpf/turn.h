/* SPDX-License-Identifier: GPL-2.0-only */
/* A turn of the event loop: its end, and how many calls it made, which tells an answer to 5,000 subscribers
 * from one.
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
	st->turn_seen = 1;
}

static __always_inline u64 at_most_16_bits(u64 n)
{
	return n < 0xffff ? n : 0xffff;
}

/* The calls since then, as an iteration's arg[1] holds them; 0 if nobody saw the turn begin. */
static __always_inline u64 calls_since(struct thread_state *st)
{
	u64 reads, writes;
	if (!st->turn_seen)
		return 0;
	read_counts(&reads, &writes);
	return at_most_16_bits(reads - st->reads_before) | at_most_16_bits(writes - st->writes_before) << 16 |
	       at_most_16_bits(st->accepted) << 32 | at_most_16_bits(st->closed) << 48;
}

/* Hands over the open turn of the event loop, if it was long enough to be looked at. `calls`: as calls_since
 * has them. */
static __always_inline void end_turn(struct thread_state *st, u64 now, u64 calls, u8 flags)
{
	u64 start_ns = st->iteration_start_ns, duration_ns = now - start_ns;
	st->iteration_start_ns = 0;
	st->turn_seen = 0;
	if (!start_ns || now <= start_ns || duration_ns < min_span_ns)
		return;
	struct ft_event_span *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
	if (!e) {
		drop(FT_DROP_SLOT_SPAN + FT_ITERATION);
		return;
	}
	fill_span(e, st, FT_ITERATION, start_ns, duration_ns);
	e->arg[0] = st->iteration_events;
	e->arg[1] = calls;
	e->flags = flags;
	bpf_ringbuf_submit(e, ring_flags());
	count(FT_COUNT_SPAN);
}

#endif

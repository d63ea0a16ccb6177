/* SPDX-License-Identifier: GPL-2.0-only */
/* An event-loop iteration: its begin, its end, and the number of its calls, which distinguishes an answer to
 * 5,000 subscribers from one to a single client. An iteration begins where a thread gets the CPU after it
 * waited for events, and ends where it waits for them again; both are context switches, which are traced
 * anyway. A loop that always finds work doesn't wait. CPU samples and checks around other switches and forks
 * detect its iterations: while a thread reads nothing it is in the same iteration, and a read belongs to
 * another one. With `exact`, programs in the wait itself do this instead (exact.h), at a higher cost. Reads
 * and writes are never traced. The kernel counts them per task (as in /proc/PID/io), so the difference of two
 * readings is exact and costs a load each; calls of the send and recv kind are not included. The kernel does
 * not count accepted connections and closed sockets: `exact` does. */
#ifndef FORKTAIL_BPF_ITERATION_H
#define FORKTAIL_BPF_ITERATION_H

#include "calls.h"
#include "state.h"

static __always_inline struct task_struct *current_task(void)
{
	return has_task_storage ? bpf_get_current_task_btf() : (struct task_struct *)bpf_get_current_task();
}

/* A kernel without CONFIG_TASK_XACCT doesn't count. */
static __always_inline void read_counts(struct task_struct *task, u64 *reads, u64 *writes)
{
	*reads = *writes = 0;
	if (!bpf_core_field_exists(task->ioac.syscr))
		return;
	if (has_task_storage) { /* and so a pointer that the verifier knows: a load each */
		*reads = task->ioac.syscr;
		*writes = task->ioac.syscw;
	} else {
		*reads = BPF_CORE_READ(task, ioac.syscr);
		*writes = BPF_CORE_READ(task, ioac.syscw);
	}
}

static __always_inline void count_from_here(struct thread_state *st, struct task_struct *task)
{
	read_counts(task, &st->reads_before, &st->writes_before);
	st->sampled_reads = st->reads_before;
	st->sampled_writes = st->writes_before;
	st->accepted = st->closed = 0;
}

/* Reports that the thread waits for events of another epoll instance than before. The instance shows which
 * connections it serves (loader/targets.h). */
static __always_inline void note_loop(struct thread_state *st, u32 epoll, u64 now)
{
	if (st->reported_loop == epoll + 1 || st->client)
		return;
	struct ft_event_loop *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
	if (!e) {
		drop(FT_DROP_SLOT_THREAD_EVENT);
		return; /* reported at the next wait */
	}
	e->type = FT_EVENT_LOOP;
	e->tid = st->tid;
	e->tgid = st->tgid;
	e->epoll = epoll;
	e->t_ns = now;
	bpf_ringbuf_submit(e, ring_flags());
	st->reported_loop = epoll + 1;
}

/* The same for a thread seen in such a call: a thread that polls without waiting may do so for another
 * thread. */
static __always_inline void note_loop_in(struct thread_state *st, struct pt_regs___user *regs, s64 nr,
					 u64 now)
{
	if (!waits_for_epoll(nr))
		return;
	if (nr != __NR_epoll_pwait2 && (s32)BPF_CORE_READ(regs, CALL_ARG3) == 0)
		return;
	note_loop(st, (u32)BPF_CORE_READ(regs, CALL_ARG0), now);
}

static __always_inline void begin_iteration(struct thread_state *st, struct task_struct *task, u64 now,
					    u64 events)
{
	st->iteration_start_ns = st->sampled_ns = now;
	st->iteration_events = events;
	st->iteration_seen = 1;
	st->has_loop = 1;
	count_from_here(st, task);
}

/* From here on an iteration is known that began some time before. */
static __always_inline void adopt_iteration(struct thread_state *st, struct task_struct *task, u64 now)
{
	st->iteration_start_ns = st->sampled_ns = now;
	st->iteration_events = 0;
	st->iteration_seen = 0;
	count_from_here(st, task);
}

static __always_inline u64 at_most_16_bits(u64 n)
{
	return n < 0xffff ? n : 0xffff;
}

/* The open iteration's calls until the thread's counters had these values, in the format of an iteration's
 * arg[1]. */
static __always_inline u64 calls_until(const struct thread_state *st, u64 reads, u64 writes)
{
	return at_most_16_bits(reads - st->reads_before) | at_most_16_bits(writes - st->writes_before) << 16 |
	       at_most_16_bits(st->accepted) << 32 | at_most_16_bits(st->closed) << 48;
}

/* Sends the open event-loop iteration, if it was long enough. `calls`: in the format of calls_until. */
CHECKED_ONCE(__always_inline)
int submit_iteration(struct thread_state *st NEVER_NULL, u64 end_ns, u64 calls, u8 flags)
{
	u64 start_ns = st->iteration_start_ns, duration_ns = end_ns - start_ns;
	st->iteration_start_ns = 0;
	if (!start_ns || end_ns <= start_ns || duration_ns < min_span_ns)
		return 0;
	struct ft_event_span *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
	if (!e) {
		drop(FT_DROP_SLOT_SPAN + FT_ITERATION);
		return 0;
	}
	fill_span(e, st, FT_ITERATION, start_ns, duration_ns);
	e->arg[0] = st->iteration_events;
	e->arg[1] = calls;
	e->flags = flags;
	bpf_ringbuf_submit(e, ring_flags());
	count(FT_COUNT_SPAN);
	return 0;
}

/* The open iteration ends now, or where it was seen last if its thread has started another one since. */
static __always_inline void end_iteration(struct thread_state *st, struct task_struct *task, u64 now,
					  u8 flags)
{
	u64 reads, writes;
	if (!st->iteration_start_ns)
		return;
	read_counts(task, &reads, &writes);
	if (st->iteration_seen)
		submit_iteration(st, now, calls_until(st, reads, writes), flags);
	else if (exact || reads == st->sampled_reads)
		submit_iteration(st, now, exact ? 0 : calls_until(st, reads, writes),
				 flags | FT_SPAN_SAMPLED);
	else
		submit_iteration(st, st->sampled_ns, calls_until(st, st->sampled_reads, st->sampled_writes),
				 flags | FT_SPAN_SAMPLED);
	st->iteration_seen = 0;
}

/* Whether a call means that an iteration is over, or that it reads in a way that the kernel does not
 * count. */
static __always_inline bool begins_another(s64 nr)
{
	return waits_for_events(nr) || nr == __NR_recvfrom || nr == __NR_recvmsg || nr == __NR_recvmmsg;
}

/* Checks the open iteration of a thread that is in system call `nr`, or none (-1). CPU samples and all
 * potentially long events call it, so that a stall is in an iteration whether or not the loop waits. */
static __always_inline void look_at_iteration(struct thread_state *st, struct task_struct *task, u64 now,
					      s64 nr)
{
	u64 reads, writes;
	if (waits_for_events(nr))
		st->has_loop = 1;
	if (!st->iteration_start_ns)
		return;
	read_counts(task, &reads, &writes);
	/* An iteration whose begin was seen reads a request first. */
	bool same = reads == st->sampled_reads || (st->iteration_seen && reads - st->reads_before <= 1);
	if (same && !begins_another(nr)) {
		st->sampled_ns = now;
		st->sampled_reads = reads;
		st->sampled_writes = writes;
		return;
	}
	/* It ended where it was last seen. If it was never checked before, it covers the time before this
	 * check. For a thread that may have no event loop, it is not reported as a complete iteration. */
	u8 flags = st->has_loop ? FT_SPAN_SAMPLED : FT_SPAN_SAMPLED | FT_SPAN_UNFINISHED;
	if (st->iteration_seen && st->sampled_ns == st->iteration_start_ns)
		submit_iteration(st, now, calls_until(st, reads, writes), flags);
	else
		submit_iteration(st, st->sampled_ns, calls_until(st, st->sampled_reads, st->sampled_writes),
				 flags);
	adopt_iteration(st, task, now);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* The open states of threads. A span is sent when it ends, so a reader of a growing recording would know
 * nothing of a thread that has slept for an hour or computes for a minute. An iterator over all tasks reports
 * these states: it reads accounts and changes nothing, so threads have no cost. It runs concurrently with the
 * programs that update accounts, without a lock. A state that changes meanwhile has just begun or ended, and
 * is not reported. */
#include "waits.h"

#include <bpf/bpf_tracing.h>

/* first: libbpf's headers need the integer types */
static __noinline int report(struct thread_state *st, struct ft_event_span *like, u64 mark_ns)
{
	if (!st || !like || like->start_ns >= open_ns)
		return 0;
	struct ft_event_span *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
	if (!e)
		return 0; /* the next scan reports it */
	*e = *like;
	e->type = FT_EVENT_OPEN;
	e->tid = st->tid;
	e->duration_ns = open_ns - like->start_ns;
	e->flags = FT_SPAN_UNFINISHED;
	if (st->mark_ns == mark_ns)
		bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	else
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
	return 0;
}

/* The event-loop iteration that it is in, unless it has gone on to another one unseen. */
static __always_inline void report_iteration(struct thread_state *st, struct task_struct *task, u64 mark_ns)
{
	u64 reads, writes, start_ns = st->iteration_start_ns;
	if (!start_ns || st->client)
		return;
	read_counts(task, &reads, &writes);
	bool same =
	    exact || reads == st->sampled_reads || (st->iteration_seen && reads - st->reads_before <= 1);
	struct ft_event_span e = {
	    .start_ns = start_ns, .owner = FT_ITERATION, .syscall = -1, .arg = {st->iteration_events}};
	if (same)
		report(st, &e, mark_ns);
}

static __always_inline void report_wait(struct thread_state *st, struct task_struct *task, u32 depth,
					u64 mark_ns)
{
	u64 wake_ns = runnable_since(st, task, open_ns);
	if (wake_ns && (wake_ns < mark_ns || wake_ns > open_ns))
		wake_ns = wake_ns < mark_ns ? mark_ns : 0;
	struct ft_event_span e = {.start_ns = mark_ns,
				  .owner = FT_RUN_QUEUE,
				  .syscall = -1,
				  .depth = (u8)depth,
				  .off_cpu = 1,
				  .blocked_ns = (wake_ns ? wake_ns : open_ns) - mark_ns,
				  .runnable_ns = wake_ns ? open_ns - wake_ns : 0};
	u32 suspended_by = e.blocked_ns ? suspension_owner(task, st->off_state) : 0;
	if (depth) {
		e.owner = suspended_by ? (u8)suspended_by
				       : (u8)st->frames[(depth - 1) & (FT_FRAME_DEPTH - 1)].owner;
	} else if (e.blocked_ns) {
		u64 fd = 0;
		struct file *file = NULL;
		u32 owner = blocked_owner(task, st->off_state, st->blocked_in, st->blocked_on, &fd, &file);
		e.syscall = st->blocked_in;
		e.arg[0] = fd;
		e.owner = suspended_by ? (u8)suspended_by : (u8)owner;
	}
	report(st, &e, mark_ns);
}

static __always_inline void report_frame(struct thread_state *st, u32 at, bool runs, u64 mark_ns)
{
	const struct frame *f = &st->frames[at & (FT_FRAME_DEPTH - 1)];
	struct ft_event_span e = {.start_ns = f->start_ns,
				  .owner = (u8)f->owner,
				  .syscall = -1,
				  .depth = (u8)at,
				  .on_cpu_ns = f->on_cpu_ns + (runs ? open_ns - mark_ns : 0),
				  .runnable_ns = f->runnable_ns,
				  .blocked_ns = f->blocked_ns,
				  .arg = {f->arg[0], f->arg[1]}};
	report(st, &e, mark_ns);
}

/* Run when the recorder wants to know, with open_ns set to that instant. */
SEC("iter/task")
int tell_open(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	if (!task)
		return 0;
	struct thread_state *st = account_of(task);
	if (!st)
		return 0;
	u64 mark_ns = st->mark_ns;
	u32 depth = st->depth;
	bool runs = !st->off_cpu;
	if (mark_ns >= open_ns || depth > FT_FRAME_DEPTH)
		return 0;
	report_iteration(st, task, mark_ns);
	for (u32 i = 0; i < FT_FRAME_DEPTH && i < depth; i++)
		report_frame(st, i, runs && i + 1 == depth, mark_ns);
	if (!runs) {
		report_wait(st, task, depth, mark_ns);
	} else if (!depth) {
		struct ft_event_span e = {
		    .start_ns = mark_ns, .owner = FT_OWN_CODE, .syscall = -1, .on_cpu_ns = open_ns - mark_ns};
		report(st, &e, mark_ns);
	}
	return 0;
}

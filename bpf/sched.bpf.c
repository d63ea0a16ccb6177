/* SPDX-License-Identifier: GPL-2.0-only */
/* Run states of target threads: switches and wakeups. waits.h classifies the waits. */
#ifdef FT_DISABLE_PREEMPTION /* Linux 6.10 */
#define FT_CHECK_ONCE
#endif
#include "program.h"
#include "waits.h"

enum { PF_KTHREAD = 0x200000 };

/* Keeps the slices of this CPU when the next one, `i`, is about to overwrite the first of them. A global
 * function, which the verifier checks once: a branch in its caller would have the rest of a switch checked
 * twice, which is too much for Linux 6.1. */
__weak int keep_slices(u32 i)
{
	const u32 cpu = bpf_get_smp_processor_id() & (FT_MAX_CPUS - 1);
	struct cpu_state *c = &cpus[cpu];
	if (i)
		return 0;
	u32 key = cpu * FT_CPU_CHUNKS + (c->chunks & (FT_CPU_CHUNKS - 1));
	struct cpu_chunk *chunk = bpf_map_lookup_elem(&cpu_chunks, &key);
	if (chunk)
		__builtin_memcpy(chunk->slices, c->slices, sizeof chunk->slices);
	c->chunks++;
	return 0;
}

static __always_inline int on_switch(bool preempt, struct task_struct *prev, struct task_struct *next,
				     u32 state)
{
	struct cpu_state *c = this_cpu();
	u64 now = bpf_ktime_get_ns();
	bool known = c->slices[c->newest & (FT_CPU_SLICES - 1)].host_tid == (u32)prev->pid;
	if (c->traced || opening || !known) {
		struct thread_state *st = state_of(prev);
		if (st && st->off_cpu && !opening)
			came_unseen(st, prev, now);
		if (st)
			switch_out(st, prev, now, preempt || state == 0, state);
	}
	u32 i = (c->newest + 1) & (FT_CPU_SLICES - 1);
	keep_slices(i);
	struct cpu_slice *s = &c->slices[i];
	s->start_ns = now;
	s->host_tid = (u32)next->pid;
	s->tid = id_of_any(next, s->host_tid);
	bpf_probe_read_kernel(s->comm, sizeof s->comm, next->comm);
	c->newest = i;
	struct thread_state *st = next->flags & PF_KTHREAD ? NULL : state_of(next);
	runs_here(c, st);
	if (st) {
		forget_interrupts(c);
		switch_in(st, next, c, now);
	}
	return 0;
}

SEC("tp_btf/sched_switch")
int sched_switch(u64 *ctx)
{
	COUNT_RUN(sched_switch);
	bool preempt = ctx[0];
	struct task_struct *prev = (struct task_struct *)ctx[1], *next = (struct task_struct *)ctx[2];
	/* Taken from the argument where available: a wakeup may race with reading the task. */
	u32 state = has_prev_state_arg ? (u32)ctx[3] : task_state(prev);
	return on_switch(preempt, prev, next, state);
}

/* A thread that waits in futex is woken. The waker counts only if it is in a call on the same word, not an
 * interrupt on top of another task (a timeout), a signal, or a thread that exits. */
static __noinline int note_waker(struct thread_state *st)
{
	struct task_struct *waker = current_task();
	struct pt_regs___user *regs = user_regs(waker);
	if ((s64)BPF_CORE_READ(regs, CALL_NUMBER) != __NR_futex ||
	    BPF_CORE_READ(regs, CALL_ARG0) != st->blocked_on)
		return 0;
	st->lock_waker = id_of(waker);
	if (st->lock_owner && own_id_of(waker) == st->lock_owner)
		st->lock_owner = st->lock_waker;
	return 0;
}

/* A thread is woken. Before it is on a run queue, an interrupt may have to reach another CPU, which takes
 * long if that CPU is a virtual machine's and its host runs something else. The thread's wait for its event
 * ends now. This runs in the waker. */
SEC("tp_btf/sched_waking")
int COUNTED_PROG(sched_waking, struct task_struct *task)
{
	struct thread_state *st = state_of(task);
	if (st && st->off_cpu && !st->wake_ns) {
		st->wake_ns = bpf_ktime_get_ns();
		if (st->in_futex)
			note_waker(st);
	}
	return 0;
}

/* A thread moves to another CPU's run queue. Where it waited first counts: who held that CPU. Its CPU is
 * changed before it is put on a queue, too; its state shows the difference. */
SEC("tp_btf/sched_migrate_task")
int COUNTED_PROG(sched_migrate_task, struct task_struct *task)
{
	struct thread_state *st = state_of(task);
	if (st && st->off_cpu && !st->queued && !st->moved && task_state(task) == 0) {
		st->queue_cpu = task_cpu(task);
		st->moved = 1;
	}
	return 0;
}

/* It is on a run queue. A thread that was woken before it had completely left its CPU was not yet off the CPU
 * above. With has_scheduler_waits these programs are attached only while a CPU quota applies to a target. */
static __always_inline int on_wakeup(struct task_struct *task)
{
	struct thread_state *st = state_of(task);
	if (st && st->off_cpu && !st->queued) {
		if (!st->wake_ns)
			st->wake_ns = bpf_ktime_get_ns();
		st->queued = 1;
		st->queue_cpu = task_cpu(task);
		note_quota(st, task);
	}
	return 0;
}

SEC("tp_btf/sched_wakeup")
int COUNTED_PROG(sched_wakeup, struct task_struct *task)
{
	return on_wakeup(task);
}

SEC("tp_btf/sched_wakeup_new")
int COUNTED_PROG(sched_wakeup_new, struct task_struct *task)
{
	return on_wakeup(task);
}

/* SPDX-License-Identifier: GPL-2.0-only */
/* The life of accounts. They are opened for threads that exist when recording begins, and for new threads and
 * children of targets from their first instant. They are closed when a thread exits and when the recording
 * ends. */
#include "program.h"
#include "waits.h"

static __always_inline void thread_event(struct thread_state *st, struct task_struct *task, u32 type, u64 now)
{
	u32 parent_tgid = type == FT_EVENT_THREAD_BEGIN ? st->parent_tgid : 0;
	struct ft_event_thread *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
	/* Not computed from `e`: the verifier of Linux 6.1 then loses track of it. */
	st->begin_lost = 0;
	if (!e) {
		st->begin_lost = type == FT_EVENT_THREAD_BEGIN;
		drop(FT_DROP_SLOT_THREAD_EVENT);
		return;
	}
	e->type = type;
	e->tid = st->tid;
	e->tgid = st->tgid;
	e->parent_tgid = parent_tgid;
	e->t_ns = now;
	e->begin_ns = st->begin_ns;
	e->clone_flag = parent_tgid == st->tgid;
	e->client = st->client;
	e->exit_code = e->exit_flags = 0;
	if (type == FT_EVENT_THREAD_END) {
		e->exit_code = (u32)BPF_CORE_READ(task, exit_code);
		e->exit_flags = FT_EXIT_CODE | (BPF_CORE_READ(task, signal, oom_mm) ? FT_EXIT_OOM_KILLER : 0);
	}
	bpf_probe_read_kernel(e->comm, sizeof e->comm, task->comm);
	/* A child may live for a few milliseconds only: the recorder must read its name now. */
	bool child = type == FT_EVENT_THREAD_BEGIN && parent_tgid && parent_tgid != st->tgid;
	bpf_ringbuf_submit(e, child ? BPF_RB_FORCE_WAKEUP : ring_flags());
}

static struct thread_state blank_state; /* a new thread in the hash; the stack has no space for it */

static __always_inline struct thread_state *new_state(struct task_struct *task)
{
	if (has_task_storage)
		return bpf_task_storage_get(&states, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u32 tid = (u32)BPF_CORE_READ(task, pid);
	bpf_map_update_elem(&states_hash, &tid, &blank_state, BPF_ANY);
	return bpf_map_lookup_elem(&states_hash, &tid);
}

/* Opens an account at `now` for a thread that is not running. NULL also if it is not visible from the
 * recorder's pid namespace. */
static __always_inline struct thread_state *open_account(struct task_struct *task, u64 now)
{
	u32 tid = id_of(task);
	if (!tid)
		return NULL;
	struct thread_state *st = new_state(task);
	if (!st) {
		drop(FT_DROP_SLOT_THREAD_STATE);
		return NULL;
	}
	st->tid = tid;
	st->tgid = process_id_of(task);
	st->begin_ns = st->mark_ns = st->tally.start_ns = now;
	st->off_cpu = 1;
	st->off_state = 0;
	st->wake_ns = 0;
	st->queued = 0;
	st->queue_cpu = task_cpu(task);
	st->moved = 0;
	st->ran_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
	st->waited_ns = finished_waits(task);
	st->quota_queue = NULL;
	st->softirq = st->softirq_met = 0;
	st->depth = 0;
	st->parent_tgid = 0;
	return st;
}

/* The fork has copied everything: what remains is to put the child on a run queue. The clock is read while no
 * interrupt charges the account: opening the child's takes long enough for one, whose time would exceed the
 * fork's. */
static __always_inline void fork_ends_here(struct thread_state *parent, struct task_struct *task)
{
	parent->busy = 1;
	u64 now = bpf_ktime_get_ns();
	look_at_iteration(parent, task, now, -1);
	pop(parent, now, FT_FORK);
	parent->fork_over = 1;
	parent->busy = 0;
}

/* A target's child or new thread is a target from its first instant. */
SEC("tp_btf/sched_process_fork")
int ACCOUNTS_PROG(sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
	struct thread_state *ps = state_of(parent);
	if (!ps)
		return 0;
	u64 now = bpf_ktime_get_ns();
	struct thread_state *st = open_account(child, now);
	if (st) {
		st->client = ps->client;
		st->parent_tgid = ps->tgid;
		/* The call returns its id in the parent's pid namespace. */
		struct frame *f = top(ps);
		if (f && f->owner == FT_FORK)
			f->arg[0] = st->tid;
		thread_event(st, child, FT_EVENT_THREAD_BEGIN, now);
		st->ready = 1;
	}
	if (!exact)
		fork_ends_here(ps, parent);
	return 0;
}

static __always_inline bool is_client(struct task_struct *task)
{
	char comm[16], client[16] = FT_CLIENT_COMM;
	bpf_probe_read_kernel(comm, sizeof comm, task->comm);
	for (u32 i = 0; i < sizeof client; i++) {
		if (comm[i] != client[i])
			return false;
		if (!comm[i])
			break;
	}
	return true;
}

/* A load generator that starts during the recording. */
SEC("tp_btf/sched_process_exec")
int UNPREEMPTED_PROG(sched_process_exec, struct task_struct *task)
{
	if (!with_client || closing_ns || account_of(task) || !is_client(task))
		return 0;
	u64 now = bpf_ktime_get_ns();
	struct thread_state *st = open_account(task, now);
	if (!st)
		return 0;
	st->client = 1;
	st->off_cpu = 0; /* it is running: it is the current task */
	thread_event(st, task, FT_EVENT_THREAD_BEGIN, now);
	st->ready = 1;
	forget_interrupts(this_cpu());
	runs_here(this_cpu(), st);
	return 0;
}

static long finish_next(u32 i, void *context)
{
	struct walk *walk = context;
	struct frame *f = top(walk->st);
	if (!f)
		return 1;
	finish_top(walk->st, walk->now, (u32)f->owner, FT_SPAN_UNFINISHED);
	return 0;
}

/* Ends the open frames, innermost first, and sends what is left. */
static __always_inline void close_account(struct thread_state *st, struct task_struct *task, u64 now)
{
	each_frame(finish_next, (struct walk){st, now, 0});
	/* If it began before the account did, it counts as an iteration only where that is likely: in a
	 * process' main thread. */
	if (st->iteration_seen || st->tid == st->tgid)
		end_iteration(st, task, now, FT_SPAN_UNFINISHED);
	tally_flush(st);
	thread_event(st, task, FT_EVENT_THREAD_END, now);
	st->dead = 1;
}

/* The hash keeps entries of exited threads. If another CPU holds a pointer to this thread's entry at this
 * instant (a wakeup of an exiting thread), it may find a new thread's account there and take the wakeup for
 * that thread's, once. */
static __always_inline void forget_state(u32 key)
{
	if (!has_task_storage)
		bpf_map_delete_elem(&states_hash, &key);
}

SEC("tp_btf/sched_process_exit")
int ACCOUNTS_PROG(sched_process_exit, struct task_struct *task)
{
	struct thread_state *st = state_of(task); /* not through the CPU: its switch may not have been seen */
	if (!st)
		return 0;
	st->busy = 1;
	runs_here(this_cpu(), NULL); /* an interrupt from here on comes after the account's end */
	u64 now = bpf_ktime_get_ns();
	u32 key = (u32)task->pid; /* not st->tid, which belongs to the recorder's pid namespace */
	if (st->off_cpu)
		came_unseen(st, task, now);
	charge(st, now);
	close_account(st, task, now);
	st->busy = 0;
	forget_state(key);
	return 0;
}

enum {
	PF_EXITING = 0x4,
	PF_IO_WORKER = 0x10, /* a kernel thread that works for an io_uring of its process */
};

/* Run after attaching and for new targets: opens the accounts of the threads of processes in `targets`, and
 * announces again those whose begin was lost. Kernel threads of io_uring get none: the start of a later one
 * is not traced, and their state, blocked in the call that created them, is misleading. */
SEC("iter/task")
int open_accounts(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	/* A thread that exits may have passed the program that closes its account; a zombie has for certain.
	 */
	if (!task || task->flags & (PF_IO_WORKER | PF_EXITING))
		return 0;
	u64 now = bpf_ktime_get_ns();
	struct thread_state *old = state_of(task);
	if (old && old->begin_lost)
		thread_event(old, task, FT_EVENT_THREAD_BEGIN, now);
	u32 tgid = process_id_of(task);
	u32 *traced_as = bpf_map_lookup_elem(&targets, &tgid);
	if (old || !traced_as)
		return 0;
	struct thread_state *st = open_account(task, now);
	if (!st)
		return 0;
	u32 state = task_state(task);
	st->off_state = state;
	if (state & TASK_TRACED)
		note_tracer(st, task);
	st->wake_ns = state ? 0 : now;
	st->queued = !state;
	st->client = *traced_as == FT_TRACED_CLIENT;
	note_call(st, task);
	if (!state)
		st->in_wait = 0;
	thread_event(st, task, FT_EVENT_THREAD_BEGIN, now);
	if (state && waits_for_epoll(st->blocked_in))
		note_loop(st, (u32)st->blocked_on, now);
	/* In an iteration already, whether on the CPU (adopt_current checks again) or preempted for a
	 * moment. */
	if (!state && !st->client)
		adopt_iteration(st, task, now);
	st->ready = 1;
	/* A wakeup or block since its state was read was not seen; later ones are. */
	u32 now_state = task_state(task);
	if (state && !now_state && !st->wake_ns) {
		st->wake_ns = now;
		st->queued = 1;
	} else if (!state && now_state && st->wake_ns == now) {
		st->off_state = now_state;
		st->wake_ns = 0;
		st->queued = 0;
		st->iteration_start_ns = 0;
		note_call(st, task);
	}
	return 0;
}

/* Run once on each CPU when the accounts are open. A thread on a CPU was opened as runnable, and may not be
 * switched for seconds: this finds it. The begin of its event-loop iteration is unknown; the iteration is at
 * least as long as it is seen. */
SEC("raw_tp")
int adopt_current(void *ctx)
{
	struct task_struct *task = current_task();
	struct thread_state *st = state_of(task);
	if (!st)
		return 0;
	if (st->off_cpu) {
		u64 now = bpf_ktime_get_ns();
		forget_interrupts(this_cpu());
		charge(st, now);
		st->off_cpu = 0;
		st->wake_ns = 0;
		if (!st->client)
			adopt_iteration(st, task, now);
	}
	runs_here(this_cpu(), st);
	return 0;
}

/* Run once when closing_ns is set and no program changes a state any more. A thread that was on the CPU is
 * known up to its last event, a thread off the CPU up to closing_ns. */
SEC("iter/task")
int close_accounts(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	if (!task)
		return 0;
	struct thread_state *st = account_of(task);
	if (!st)
		return 0;
	if (st->off_cpu && closing_ns > st->mark_ns)
		switch_in(st, task, NULL, closing_ns);
	close_account(st, task, st->mark_ns);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only */
/* The state machine of one target thread: which owner does its time belong to now? A thread has a small stack
 * of frames. `mark_ns` is the instant up to which its time has been charged. Every program that changes the
 * owner first charges mark..now to the innermost frame (or to own code), so own times add up to wall time by
 * construction. Programs run in the thread itself, which they keep on its CPU (program.h), or in an interrupt
 * on top of it, so there are no locks: `busy` tells an interrupt that it interrupted an update. Interrupts
 * are not frames. Over loopback there are hundreds of thousands per second, so their time is added up per
 * CPU, in memory that needs no lookup, and is charged to the thread's account when its time is charged next.
 * That is exact: a thread leaves a CPU only by a switch, which charges. An interval of at least min_span_ns
 * becomes a span, a shorter one is added to the tally of the current window. An interval that can't be sent
 * (ring full) is added to the tally: it counts as a drop, but its time stays in the account. */
#ifndef FORKTAIL_BPF_STATE_H
#define FORKTAIL_BPF_STATE_H

#include "bpf/events.h"
#include "calls.h"
#include "compat.h"
#include "types.h"

enum { NET_RX = 3 }; /* a vector of soft interrupts */

struct frame {
	u64 start_ns;
	u64 on_cpu_ns, runnable_ns, blocked_ns;
	u64 arg[2];
	u64 owner;
};

struct thread_state {
	u64 begin_ns;
	u64 mark_ns;
	u64 wake_ns;		/* off CPU: when it became runnable; 0: not yet */
	u64 iteration_start_ns; /* 0: in epoll_wait, or unknown */
	u64 iteration_events;
	u64 reads_before, writes_before;   /* the thread's reads and writes at the iteration's begin */
	u64 sampled_ns;			   /* the last check that found the open iteration unchanged */
	u64 sampled_reads, sampled_writes; /* the thread's counters then */
	u64 next_stack_ns;		   /* before that, only samples in long iterations have stacks */
	u64 next_pipe_ns;		   /* before that, no wait for a pipe is reported */
	u32 accepted, closed;		   /* connections in this iteration */
	struct cfs_rq *quota_queue;	   /* off the CPU: the run queue whose quota it may wait for */
	u64 throttled_before_ns;	   /* of that queue when the wait began */
	u64 ran_ns;    /* off the CPU: its on-CPU time so far, according to the scheduler */
	u64 waited_ns; /* likewise its time on run queues */
	u32 tid, tgid; /* in the recorder's pid namespace, as in the recorder's /proc */
	u32 depth;
	u32 off_state;	     /* off CPU: the task state it left with */
	u32 queue_cpu;	     /* runnable: the CPU where it began to wait */
	s16 blocked_in;	     /* the system call of the last blocked interval without a frame */
	u64 blocked_on;	     /* that call's first argument */
	u32 peer_fd;	     /* in_peer_wait: the socket, as far as it is known */
	u32 reported_loop;   /* 1 + the epoll instance that was last reported; 0: none */
	u32 lock_owner;	     /* in futex: the lock holder's id in its memory; 0: unknown (locks.h) */
	u32 lock_waker;	     /* in futex: the waker; 0: none yet, or not a thread */
	u32 tracer;	     /* the process that traces it, when it was last stopped by one */
	u32 reported_tracer; /* the one whose name the recorder knows */
	u32 parent_tgid;     /* of the thread that created it while recording; 0: it existed before */
	char tracer_comm[16];
	u8 ready, dead, off_cpu, busy;
	u8 begin_lost; /* the recorder does not know it yet: the ring was full */
	u8 unseen;     /* while an interval off the CPU is accounted whose end was not seen */
	u8 client;     /* of a load generator: an account of its run states only */
	u8 queued;     /* off CPU: it is on a run queue, or was seen to be put there */
	u8 moved;      /* off CPU: to another run queue than that of queue_cpu */
	u8 throttled;  /* while an interval off the CPU due to its quota is accounted */
	u8 alloc_seen, alloc_zero, alloc_order; /* page allocations inside the open fault */
	u8 blocked;				/* the open fault has waited */
	u8 dirty;				/* the tally is not empty */
	u8 iteration_seen; /* the open event-loop iteration: its begin was seen, not assumed */
	u8 has_loop;	   /* it was seen waiting for events */
	u8 in_wait;	   /* off CPU: it waits for events */
	u8 in_futex;	   /* off CPU: it waits in futex */
	u8 in_peer_wait;   /* off CPU: it waits for one peer, inside an event-loop iteration */
	u8 softirq_met;	   /* sampled soft interrupts: 1 + the vector that the last sample met; 0: none */
	u8 softirq;	   /* likewise: 1 + the vector that two samples in a row met; 0: none */
	u8 fork_over;	   /* the forking call, which may not have returned yet, has forked */
	struct frame frames[FT_FRAME_DEPTH];
	struct ft_event_tally tally; /* sent unchanged */
};

/* A function of the account. In a file with FT_CHECK_ONCE it is a global one, which the verifier checks once,
 * by itself, and not once for each state in which it is called: a switch is checked in a sixth of the time.
 * It returns 0, because a global function has to return a number. Linux 6.8 knows by the tags that its
 * pointers are never NULL (and `task` is a task); 6.10 to 6.14 allow no call of it where preemption is
 * disabled. */
#ifdef FT_CHECK_ONCE
#define CHECKED_ONCE(otherwise) __noinline __weak
#else
#define CHECKED_ONCE(otherwise) static otherwise
#endif
#define NEVER_NULL __attribute__((btf_decl_tag("arg:nonnull")))
#define A_TASK __attribute__((btf_decl_tag("arg:trusted")))

/* Maps and settings are defined once, in maps.bpf.c. */
struct states_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
};
struct states_hash_map {
	__uint(type, BPF_MAP_TYPE_HASH); /* preallocated, 5 MB: perf-event programs may use no other kind */
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct thread_state);
};
struct targets_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FT_MAX_TARGETS);
	__type(key, u32);
	__type(value, u32);
};
struct ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
};
/* The tasks that held a CPU before those in its `slices`: FT_CPU_CHUNKS entries for each CPU, a ring. The
 * loader sets their number. */
struct cpu_chunk {
	struct cpu_slice slices[FT_CPU_SLICES];
};
struct cpu_chunks_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FT_CPU_CHUNKS);
	__type(key, u32);
	__type(value, struct cpu_chunk);
};
extern struct states_map states SEC(".maps");
extern struct states_hash_map states_hash SEC(".maps");
extern struct targets_map targets SEC(".maps");
extern struct ring_map ring SEC(".maps");
extern struct cpu_chunks_map cpu_chunks SEC(".maps");

extern const volatile __u64 min_span_ns;
extern const volatile __u64 sample_stack_ns; /* time in an event-loop iteration before a stack is copied */
extern const volatile __u32 fast_period;     /* of samples while an iteration is long, in 1/16 ms */
extern const volatile __u64 ring_wake_bytes;
extern const volatile __u32 pid_ns;	    /* the recorder's pid namespace; 0: the initial one */
extern const volatile bool with_client;	    /* load generators get accounts too */
extern const volatile bool exact;	    /* system calls have programs: calls.h */
extern const volatile bool hard_interrupts; /* they have programs: irq.bpf.c */
extern struct cpu_state cpus[FT_MAX_CPUS];
extern __u64 drops[FT_DROP_SLOTS];
/* Set by the loader when the recording ends: from then on no program changes an account. Detaching takes a
 * second or two, and an account updated by only half of the programs would be wrong. */
extern volatile __u64 closing_ns;
/* Set by the loader to the instant at which it requests the threads' open states. */
extern volatile __u64 open_ns;
/* Set by the loader until every CPU's current thread has been adopted: a switch also checks the thread that
 * leaves. */
extern volatile __u32 opening;
/* Set by the loader while a CPU quota applies to a target: without one, throttling is not checked. */
extern volatile __u32 quota_in_force;
/* Set by the loader: soft interrupts are timed (irq.bpf.c), or CPU samples see them (samples.bpf.c), which
 * look for this code. */
extern volatile __u32 softirqs_timed, softirqs_sampled;
extern struct ft_kernel_code_range kernel_code[FT_KERNEL_CODES];
/* How many CPUs have come online. */
extern volatile __u32 cpus_came;

/* Masked instead of checked: every verifier since 5.10 understands a mask, and the loader refuses hosts with
 * more CPUs. */
static __always_inline struct cpu_state *this_cpu(void)
{
	return &cpus[bpf_get_smp_processor_id() & (FT_MAX_CPUS - 1)];
}

/* The task that has this CPU from now on; NULL: without an account. For a load generator only its run states
 * matter, so its faults, interrupts, samples and system calls cost no more than those of other processes. */
static __always_inline void runs_here(struct cpu_state *c, const struct thread_state *st)
{
	c->traced = st != NULL;
	c->target = st && !st->client;
}

static __always_inline void count(u32 counter)
{
	if (counter < FT_COUNTERS)
		this_cpu()->counters[counter]++;
}

static __always_inline void drop(u64 slot)
{
	asm volatile("" : "+r"(slot)); /* as an owner in tally_add: avoids a second copy */
	if (slot < FT_DROP_SLOTS)
		__sync_fetch_and_add(&drops[slot], 1);
}

/* NULL unless the thread has an account, open or being closed. */
static __always_inline struct thread_state *account_of(struct task_struct *task)
{
	struct thread_state *st;
	if (has_task_storage) {
		if (!task->bpf_storage) /* nearly every other task of the host */
			return NULL;
		st = bpf_task_storage_get(&states, task, NULL, 0);
	} else {
		u32 tid = (u32)BPF_CORE_READ(task, pid);
		st = bpf_map_lookup_elem(&states_hash, &tid);
	}
	return st && st->ready && !st->dead ? st : NULL;
}

/* NULL unless the thread is a target whose account is open. */
static __always_inline struct thread_state *state_of(struct task_struct *task)
{
	return closing_ns ? NULL : account_of(task);
}

/* The current thread's state. Cheap if it is not a target. */
static __always_inline struct thread_state *current_state(void)
{
	if (!this_cpu()->target || closing_ns)
		return NULL;
	if (has_task_storage)
		return state_of(bpf_get_current_task_btf());
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct thread_state *st = bpf_map_lookup_elem(&states_hash, &tid);
	return st && st->ready && !st->dead ? st : NULL;
}

/* Interrupts must not change a state that the interrupted program is updating. */
static __always_inline struct thread_state *current_state_in_interrupt(void)
{
	struct thread_state *st = current_state();
	return st && !st->busy ? st : NULL;
}

/* The recorder reads the ring twenty times per second on its own. It is woken only if the ring fills faster
 * than that, because a wakeup costs more than its events. */
static __always_inline u64 ring_flags(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= ring_wake_bytes ? BPF_RB_FORCE_WAKEUP
									      : BPF_RB_NO_WAKEUP;
}

static __always_inline u32 at_most_32_bits(u64 ns)
{
	return ns < (u32)-1 ? (u32)ns : (u32)-1;
}

static __always_inline void tally_add(struct thread_state *st, u64 owner, u64 ns)
{
	/* Prevents the compiler from checking one copy of the index and using another, which the verifier
	 * would not accept. */
	asm volatile("" : "+r"(owner));
	if (owner >= FT_OWNER_LIMIT)
		return;
	struct ft_tally_entry *e = &st->tally.entry[owner];
	e->total_ns += ns;
	e->count++;
	if (ns > e->max_ns)
		e->max_ns = at_most_32_bits(ns);
	st->dirty = 1;
}

/* Sends the window that ends at mark_ns, and begins the next one there. */
CHECKED_ONCE(__always_inline) int tally_flush(struct thread_state *st NEVER_NULL)
{
	if (st->dirty) {
		st->tally.type = FT_EVENT_TALLY;
		st->tally.tid = st->tid;
		st->tally.end_ns = st->mark_ns;
		if (bpf_ringbuf_output(&ring, &st->tally, sizeof st->tally, ring_flags())) {
			drop(FT_DROP_SLOT_TALLY); /* kept: the next flush tries again with a wider window */
			return 0;
		}
		count(FT_COUNT_TALLY);
		__builtin_memset(st->tally.entry, 0, sizeof st->tally.entry);
		st->dirty = 0;
	}
	st->tally.start_ns = st->mark_ns;
	return 0;
}

/* Closes the window when it is over. First in every program, before anything at `now` is charged. */
static __always_inline void tally_roll(struct thread_state *st, u64 now)
{
	if (now - st->tally.start_ns >= FT_TALLY_WINDOW_NS)
		tally_flush(st);
}

static __always_inline u32 interrupt_owner(u64 kind)
{
	return kind < FT_SOFTIRQ_VECTORS ? FT_SOFTIRQ + (u32)kind : FT_HARDIRQ;
}

/* Moves the interrupt time on this CPU since the last time, at most `ns`, to the thread's window. Returns
 * that time, including interrupts that became spans. An interrupt may come at any point and only adds. */
static __noinline u64 fold_interrupts(struct thread_state *st, struct cpu_state *c, u64 ns)
{
	u64 pending_ns = c->interrupted_ns - c->folded_ns;
	if (pending_ns > ns) /* one came after the clock was read */
		pending_ns = ns;
	c->folded_ns += pending_ns;
	u64 left_ns = pending_ns;
	for (u32 kind = 0; kind < FT_INTERRUPT_KINDS; kind++) {
		struct interrupts *i = &c->interrupts[kind];
		u64 more_ns = i->total_ns - i->folded_ns;
		if (!more_ns)
			continue;
		if (more_ns > left_ns)
			more_ns = left_ns;
		left_ns -= more_ns;
		i->folded_ns += more_ns;
		struct ft_tally_entry *e = &st->tally.entry[interrupt_owner(kind)];
		e->total_ns += more_ns;
		e->count += i->count;
		if (i->max_ns > e->max_ns)
			e->max_ns = i->max_ns;
		i->count = i->max_ns = 0;
		st->dirty = 1;
	}
	return pending_ns;
}

/* Before a thread's time on this CPU begins: the remaining interrupt time belongs to no thread. */
static __always_inline void forget_interrupts(struct cpu_state *c)
{
	c->interrupt_depth = 0;
	if (c->interrupted_ns == c->folded_ns)
		return;
	c->folded_ns = c->interrupted_ns;
	for (u32 kind = 0; kind < FT_INTERRUPT_KINDS; kind++) {
		struct interrupts *i = &c->interrupts[kind];
		if (i->total_ns != i->folded_ns) {
			i->folded_ns = i->total_ns;
			i->count = i->max_ns = 0;
		}
	}
}

/* Charges mark..now, all of it on this CPU, to interrupts and to the innermost frame or own code. Time never
 * goes back: if an interrupt has charged after this program read the clock, nothing is left to charge. */
CHECKED_ONCE(__always_inline) int charge(struct thread_state *st NEVER_NULL, u64 now)
{
	if ((s64)(now - st->mark_ns) <= 0)
		return 0;
	tally_roll(st, now);
	struct cpu_state *c = this_cpu();
	u64 ns = now - st->mark_ns;
	if (c->interrupted_ns != c->folded_ns)
		ns -= fold_interrupts(st, c, ns);
	c->last_fold_ns = now;
	u32 depth = st->depth;
	if (st->softirq && softirqs_sampled)
		tally_add(st, FT_SOFTIRQ + st->softirq - 1, ns);
	else if (depth == 0 || depth > FT_FRAME_DEPTH) {
		st->tally.entry[FT_OWN_CODE].total_ns += ns;
		st->dirty = 1;
	} else {
		st->frames[(depth - 1) & (FT_FRAME_DEPTH - 1)].on_cpu_ns += ns;
	}
	st->mark_ns = now;
	return 0;
}

static __always_inline void fill_span(struct ft_event_span *e, const struct thread_state *st, u32 owner,
				      u64 start_ns, u64 duration_ns)
{
	e->type = FT_EVENT_SPAN;
	e->tid = st->tid;
	e->start_ns = start_ns;
	e->duration_ns = duration_ns;
	e->on_cpu_ns = e->runnable_ns = e->blocked_ns = 0;
	e->arg[0] = e->arg[1] = 0;
	e->cpu = (u16)bpf_get_smp_processor_id();
	e->syscall = -1;
	e->owner = (u8)owner;
	e->depth = (u8)st->depth;
	e->flags = 0;
	e->off_cpu = 0;
}

static __always_inline void push(struct thread_state *st, u64 now, u32 owner, u64 arg0, u64 arg1)
{
	charge(st, now);
	u32 depth = st->depth;
	if (depth >= FT_FRAME_DEPTH) {
		drop(FT_DROP_SLOT_DEPTH);
		return;
	}
	struct frame *f = &st->frames[depth & (FT_FRAME_DEPTH - 1)];
	f->start_ns = now;
	f->on_cpu_ns = f->runnable_ns = f->blocked_ns = 0;
	f->arg[0] = arg0;
	f->arg[1] = arg1;
	f->owner = owner;
	st->depth = depth + 1;
}

/* The innermost frame, or NULL. */
static __always_inline struct frame *top(struct thread_state *st)
{
	u32 depth = st->depth;
	if (depth == 0 || depth > FT_FRAME_DEPTH)
		return NULL;
	return &st->frames[(depth - 1) & (FT_FRAME_DEPTH - 1)];
}

static __always_inline bool top_is(struct thread_state *st, u32 owner)
{
	struct frame *f = top(st);
	return f && f->owner == owner;
}

/* Sends a frame that has been removed from the stack. False: the ring was full. */
static __always_inline bool emit_frame(struct thread_state *st, const struct frame *f, u32 owner,
				       u64 duration_ns, u8 flags)
{
	struct ft_event_span *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
	if (!e) {
		drop(FT_DROP_SLOT_SPAN + owner);
		return false;
	}
	fill_span(e, st, owner, f->start_ns, duration_ns);
	e->on_cpu_ns = f->on_cpu_ns;
	e->runnable_ns = f->runnable_ns;
	e->blocked_ns = f->blocked_ns;
	e->arg[0] = f->arg[0];
	e->arg[1] = f->arg[1];
	e->flags = flags;
	bpf_ringbuf_submit(e, ring_flags());
	count(FT_COUNT_SPAN);
	return true;
}

/* Ends the innermost frame, already charged up to now, as `owner`. */
CHECKED_ONCE(__always_inline) int finish_top(struct thread_state *st NEVER_NULL, u64 now, u32 owner, u8 flags)
{
	struct frame *f = top(st);
	if (!f)
		return 0;
	st->depth--;
	u64 duration_ns = now - f->start_ns, own_ns = f->on_cpu_ns + f->runnable_ns + f->blocked_ns;
	if (duration_ns < min_span_ns || !emit_frame(st, f, owner, duration_ns, flags))
		tally_add(st, owner, own_ns);
	return 0;
}

/* Charges and ends the innermost frame if it has this owner (it has not if its begin was missed). */
static __always_inline void pop(struct thread_state *st, u64 now, u32 owner)
{
	if (!top_is(st, owner))
		return;
	charge(st, now);
	finish_top(st, now, owner, 0);
}

/* The whole work of a program for the usual frame. `st` may be NULL: not a target. */
static __always_inline int frame_begins(struct thread_state *st, u32 owner, u64 arg0)
{
	if (!st)
		return 0;
	st->busy = 1;
	push(st, bpf_ktime_get_ns(), owner, arg0, 0);
	st->busy = 0;
	return 0;
}

static __always_inline int frame_ends(struct thread_state *st, u32 owner)
{
	if (!st)
		return 0;
	st->busy = 1;
	pop(st, bpf_ktime_get_ns(), owner);
	st->busy = 0;
	return 0;
}

/* The innermost frame, already charged up to now, had no end (a fault that became a signal), so its owner was
 * wrong: its time belongs to the frame below. A long one stays as a span that says so; a short one is added
 * to the frame below, or to the window. */
CHECKED_ONCE(__always_inline) int abandon_top(struct thread_state *st NEVER_NULL, u64 now)
{
	struct frame *f = top(st);
	if (!f)
		return 0;
	if (f->owner == FT_FAULT_OTHER)
		count(FT_COUNT_FAULT_ABANDONED);
	u64 on_cpu = f->on_cpu_ns, runnable = f->runnable_ns, blocked = f->blocked_ns;
	st->depth--;
	struct frame *below = top(st);
	if (now - f->start_ns >= min_span_ns &&
	    emit_frame(st, f, below ? below->owner : FT_OWN_CODE, now - f->start_ns, FT_SPAN_ABANDONED))
		return 0;
	if (below) {
		below->on_cpu_ns += on_cpu;
		below->runnable_ns += runnable;
		below->blocked_ns += blocked;
	} else {
		st->tally.entry[FT_OWN_CODE].total_ns += on_cpu;
		if (runnable)
			tally_add(st, FT_RUN_QUEUE, runnable);
		if (blocked)
			tally_add(st, FT_SYSCALL, blocked);
		st->dirty = 1;
	}
	return 0;
}

/* Whether the innermost frame has ended unseen, according to the thread's system call: a fault in user mode
 * that became a signal, or a fork that failed. */
static __always_inline bool is_stale(struct thread_state *st, s64 nr)
{
	struct frame *f = top(st);
	if (!f)
		return false;
	if (f->owner == FT_FAULT_OTHER)
		return nr >= 0 && f->arg[1] & FAULT_USER;
	return f->owner == FT_FORK && !call_forks(nr);
}

/* A walk over the frames of a thread that is charged up to `now`, from the innermost one. */
struct walk {
	struct thread_state *st;
	u64 now;
	s64 nr; /* its system call, for abandon_stale */
};

/* Calls `step` until it returns 1, at most once for each frame. With bpf_loop (5.17) the verifier checks a
 * step twice, instead of once for each frame. */
static __always_inline void each_frame(long (*step)(u32, void *), struct walk walk)
{
#ifdef FT_DISABLE_PREEMPTION
	bpf_loop(FT_FRAME_DEPTH, step, &walk, 0);
#else
	for (u32 i = 0; i < FT_FRAME_DEPTH && !step(i, &walk); i++)
		;
#endif
}

static long abandon_if_stale(u32 i, void *context)
{
	struct walk *walk = context;
	if (!is_stale(walk->st, walk->nr))
		return 1;
	abandon_top(walk->st, walk->now);
	return 0;
}

static __always_inline void abandon_stale(struct thread_state *st, u64 now, s64 nr)
{
	each_frame(abandon_if_stale, (struct walk){st, now, nr});
}

static long abandon_next(u32 i, void *context)
{
	struct walk *walk = context;
	abandon_top(walk->st, walk->now);
	return !walk->st->depth;
}

/* Before a frame that can only begin in user mode or at a system call's entry: all frames still on the stack
 * never ended. */
static __always_inline void abandon_all(struct thread_state *st, u64 now)
{
	if (!st->depth)
		return;
	charge(st, now);
	each_frame(abandon_next, (struct walk){st, now, 0});
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* A thread off the CPU: what is stored when it leaves, and how the interval is classified when it returns. An
 * off-CPU interval is blocked until the wakeup and runnable after it. The system call is stored at the begin,
 * because an event-loop iteration may end there. The CPU holder, file and stack are looked up when the thread
 * returns, most of it only if the wait was long, so a short wait costs almost nothing. The stack of a thread
 * that is about to run again is still the one it slept with. */
#ifndef FORKTAIL_BPF_WAITS_H
#define FORKTAIL_BPF_WAITS_H

#include "state.h" /* first: libbpf's headers need the integer types */

#include "calls.h"
#include "files.h"
#include "ids.h"
#include "iteration.h"
#include "locks.h"
#include "sockets.h"

enum { TASK_STOPPED = 4, TASK_TRACED = 8 };

/* The owner of an interval in which a task was prevented from running, whatever it was about to do (a server
 * that is frozen in epoll_wait is not idle), or 0. */
static __always_inline u32 suspension_owner(struct task_struct *task, u32 state)
{
	if (state & TASK_TRACED)
		return FT_PTRACED;
	if (state & TASK_STOPPED)
		return FT_STOPPED;
	return is_frozen(task, state) ? FT_FROZEN : 0;
}

/* The owner of any other blocked interval without a frame, by its system call and that call's first argument.
 * *fd and *file are set for calls on a file. */
static __always_inline u32 blocked_owner(struct task_struct *task, u32 state, s64 nr, u64 argument, u64 *fd,
					 struct file **file)
{
	enum call_class class = call_class(nr);
	switch (class) {
	case CALL_IDLE:
		return works_on_ring(nr, state) ? FT_SYSCALL : FT_IDLE;
	case CALL_LOCK:
		return FT_LOCK_WAIT;
	case CALL_SLEEP:
		return FT_SLEEP;
	case CALL_META:
		return FT_FILE_META;
	case CALL_SOCKET:
		*fd = argument;
		return FT_NETWORK;
	case CALL_ACCEPT:
		return FT_NETWORK;
	case CALL_FORK:
		return FT_FORK; /* a vfork's wait for its child */
	case CALL_SYNC:
	case CALL_READ:
	case CALL_WRITE:
		break;
	default:
		return FT_SYSCALL;
	}
	*fd = argument;
	*file = nr == __NR_msync ? NULL : file_of(task, *fd);
	if (class == CALL_SYNC)
		return FT_FSYNC;
	enum ft_sample_file kind = file_kind(*file);
	if (kind == FT_SAMPLE_FILE_SOCKET)
		return FT_NETWORK;
	if (kind != FT_SAMPLE_FILE_DISK)
		return FT_SYSCALL; /* a pipe, an eventfd, a terminal */
	return class == CALL_READ ? FT_FILE_READ : FT_FILE_WRITE;
}

enum { NO_FILE = (u32)-1 };

/* Whether a thread with a loop over epoll waits for one peer: inside an iteration, in a call on a socket, or
 * in one that a loop over epoll needs for nothing else. Its file is st->peer_fd, if that is known. */
static __always_inline bool waits_for_peer(struct thread_state *st, struct task_struct *task, s64 nr,
					   u64 argument)
{
	if (!st->has_loop || !st->iteration_start_ns || st->client || waits_for_events(nr))
		return false;
	st->peer_fd = NO_FILE;
	if (call_polls(nr)) {
		/* The first member of the first struct pollfd. */
		bpf_probe_read_user(&st->peer_fd, sizeof st->peer_fd, (void *)argument);
		return true;
	}
	if (call_selects(nr)) {
		st->peer_fd = argument ? (u32)argument - 1 : NO_FILE; /* the highest of the sets */
		return true;
	}
	enum call_class class = call_class(nr);
	if (class != CALL_SOCKET && class != CALL_READ && class != CALL_WRITE)
		return false;
	st->peer_fd = (u32)argument;
	return class == CALL_SOCKET || file_kind(file_of(task, argument)) == FT_SAMPLE_FILE_SOCKET;
}

/* Fills *name with the other end of a socket. */
static __noinline int read_peer(struct task_struct *task, u32 fd, char *name)
{
	struct ft_peer peer = {};
	struct file *file = fd == NO_FILE ? NULL : file_of(task, fd);
	if (file && file_kind(file) == FT_SAMPLE_FILE_SOCKET) {
		struct socket *socket = BPF_CORE_READ(file, private_data);
		struct sock *sk = BPF_CORE_READ(socket, sk);
		enum { SOCK_DGRAM = 2 };
		u16 port = BPF_CORE_READ(sk, __sk_common.skc_dport);
		peer.family = (u8)BPF_CORE_READ(sk, __sk_common.skc_family);
		peer.datagram = BPF_CORE_READ(sk, sk_type) == SOCK_DGRAM;
		if (peer.family == AF_INET) {
			u32 address = BPF_CORE_READ(sk, __sk_common.skc_daddr);
			__builtin_memcpy(peer.address, &address, sizeof address);
		} else if (peer.family == AF_INET6) {
			struct in6_addr address = BPF_CORE_READ(sk, __sk_common.skc_v6_daddr);
			__builtin_memcpy(peer.address, &address, sizeof peer.address);
		} else if (peer.family == AF_UNIX) {
			struct pid *pid = BPF_CORE_READ(sk, sk_peer_pid);
			port = 0;
			peer.pid = (u32)BPF_CORE_READ(pid, numbers[0].nr);
		}
		peer.port = __builtin_bswap16(port);
	}
	__builtin_memcpy(name, &peer, sizeof peer);
	return 0;
}

/* Sends the stack of a thread that begins to wait for a peer, at most one in PEER_STACK_NS: it shows who in
 * the program waits. It has to be read now, because the thread's memory is not there when another one is
 * switched from. */
static __noinline int send_wait_stack(struct thread_state *st, struct task_struct *task, s64 nr, u64 now)
{
	enum { PEER_STACK_NS = 20000000 };
	if (now < st->next_stack_ns)
		return 0;
	st->next_stack_ns = now + PEER_STACK_NS;
	struct ft_event_sample_stack *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
	if (!e) {
		drop(FT_DROP_SLOT_SAMPLE);
		return 0;
	}
	struct pt_regs___user *regs = user_regs(task);
	__builtin_memset(&e->sample, 0, sizeof e->sample);
	e->sample.type = FT_EVENT_SAMPLE_STACK;
	e->sample.tid = st->tid;
	e->sample.tgid = st->tgid;
	e->sample.cpu = (u16)bpf_get_smp_processor_id();
	e->sample.owner = FT_PEER_WAIT;
	e->sample.in_kernel = 1;
	e->sample.t_ns = now;
	e->sample.ip = BPF_CORE_READ(regs, USER_IP);
	e->sample.syscall = (s16)nr;
	e->sample.file = FT_SAMPLE_FILE_SOCKET;
	e->sample.period = (u8)this_cpu()->sample_period;
	u64 sp = BPF_CORE_READ(regs, USER_SP);
	e->sp = sp;
	save_registers(e->saved, regs);
	e->kernel_bytes = 0;
	e->stack_bytes = 0;
#pragma unroll
	for (u32 at = 0; at < FT_USER_STACK_BYTES; at += FT_USER_STACK_CHUNK) {
		if (bpf_probe_read_user(&e->stack[at], FT_USER_STACK_CHUNK, (void *)(sp + at)))
			break;
		e->stack_bytes = at + FT_USER_STACK_CHUNK;
	}
	bpf_ringbuf_submit(e, ring_flags());
	return 0;
}

/* Reports a thread that begins to wait for the other end of a pipe, at most one in PIPE_NS: its processes are
 * looked up while it waits, because a stopped one may continue before the wait ends. A global function,
 * because the verifiers of older kernels would check its paths once for each path to it. */
__weak int report_pipe(s64 nr, u64 now)
{
	enum { PIPE_NS = 1000000000 };
	struct thread_state *st = current_state();
	enum call_class class = call_class(nr);
	if (!st || now < st->next_pipe_ns || st->client || (class != CALL_READ && class != CALL_WRITE))
		return 0;
	struct file *file = file_of(current_task(), st->blocked_on);
	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & FILE_KIND) != FIFO)
		return 0;
	struct ft_event_pipe *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
	if (!e)
		return 0; /* the next wait reports it */
	st->next_pipe_ns = now + PIPE_NS;
	e->type = FT_EVENT_PIPE;
	e->tid = st->tid;
	e->tgid = st->tgid;
	e->fd = (u32)st->blocked_on;
	e->t_ns = now;
	e->inode = BPF_CORE_READ(file, f_inode, i_ino);
	e->writes = class == CALL_WRITE;
	e->pad = 0;
	bpf_ringbuf_submit(e, ring_flags());
	return 0;
}

/* Fills *name with a file that is not on a disk. */
static __always_inline int read_special_file(struct file *file, char *name)
{
	struct ft_special_file special = {};
	const unsigned char *text = BPF_CORE_READ(file, f_path.dentry, d_name.name);
	special.mode = BPF_CORE_READ(file, f_inode, i_mode);
	special.number = (special.mode & FILE_KIND) == CHARACTER_DEVICE ? BPF_CORE_READ(file, f_inode, i_rdev)
									: BPF_CORE_READ(file, f_inode, i_ino);
	bpf_probe_read_kernel_str(special.name, sizeof special.name, text);
	__builtin_memcpy(name, &special, sizeof special);
	return 0;
}

static __always_inline void read_file_name(struct file *file, char *name)
{
	const unsigned char *text = BPF_CORE_READ(file, f_path.dentry, d_name.name);
	bpf_probe_read_kernel_str(name, FT_NAME_BYTES, text);
}

/* Fills *name with the file that the thread waited for, if it has one. */
static __noinline int name_file(struct thread_state *st, struct task_struct *task, struct file *file,
				u32 owner, char *name)
{
	struct frame *f = top(st);
	if (f && owner == FT_FSYNC && f->arg[1] != __NR_msync)
		file = file_of(task, f->arg[0]);
	if (!file)
		return 0;
	if (owner == FT_SYSCALL)
		return read_special_file(file, name);
	read_file_name(file, name);
	return 0;
}

/* Sends the kept slices of a CPU that began before `until`: those of the chunk before the newest `back`.
 * Returns when the first of them began, `until` if all of them were sent before, 0 if there is nothing more
 * to send. A global function: the verifier checks it once, and not once for each path through the loop that
 * calls it. */
__weak u64 send_chunk(u32 cpu, u32 back, u64 until)
{
	cpu &= FT_MAX_CPUS - 1;
	u32 key = cpu * FT_CPU_CHUNKS + ((cpus[cpu].chunks - back) & (FT_CPU_CHUNKS - 1));
	struct cpu_chunk *chunk = bpf_map_lookup_elem(&cpu_chunks, &key);
	if (!chunk || !chunk->slices[0].start_ns)
		return 0;
	if (chunk->slices[0].start_ns >= until)
		return until;
	struct ft_event_slices *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
	if (!e)
		return 0;
	e->type = FT_EVENT_SLICES;
	e->cpu = cpu;
	e->until_ns = until;
	__builtin_memcpy(e->slices, chunk->slices, sizeof e->slices);
	until = e->slices[0].start_ns;
	bpf_ringbuf_submit(e, ring_flags());
	return until;
}

/* Sends the tasks that held a CPU since `wake`, as far as they are kept, without those since `until`. */
__weak int send_earlier_slices(u32 cpu, u64 wake, u64 until)
{
	for (u32 back = 1; back < FT_CPU_CHUNKS && until > wake; back++)
		until = send_chunk(cpu, back, until);
	return 0;
}

/* Sends an off-CPU interval [mark, now): blocked until `wake`, runnable after. False: the ring was full. */
static __always_inline bool emit_off_cpu(struct thread_state *st, struct task_struct *task,
					 struct cpu_state *c, u32 owner, s64 nr, const u64 *arg,
					 struct file *file, u64 wake, u64 now)
{
	u64 start_ns = st->mark_ns, blocked_ns = wake - start_ns, runnable_ns = now - wake;
	bool suspended = owner == FT_STOPPED || owner == FT_FROZEN || owner == FT_PTRACED;
	bool want_stack = blocked_ns >= min_span_ns && owner != FT_IDLE && !suspended;
	bool want_holder = c && runnable_ns >= min_span_ns;
	/* Under strace a thread is stopped twice in every call: the tracer is reported once. */
	bool want_tracer = owner == FT_PTRACED && st->tracer != st->reported_tracer;
	u8 flags = st->throttled ? FT_SPAN_THROTTLED : 0;
	if (!want_stack && !want_holder && !want_tracer) {
		struct ft_event_span *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
		if (!e)
			return false;
		fill_span(e, st, owner, start_ns, now - start_ns);
		e->runnable_ns = runnable_ns;
		e->blocked_ns = blocked_ns;
		e->arg[0] = arg[0];
		e->arg[1] = arg[1];
		e->syscall = (s16)nr;
		e->flags = flags;
		e->off_cpu = 1;
		bpf_ringbuf_submit(e, ring_flags());
		return true;
	}
	struct ft_event_span_detail *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
	if (!e)
		return false;
	fill_span(&e->span, st, owner, start_ns, now - start_ns);
	e->span.type = FT_EVENT_SPAN_DETAIL;
	e->span.runnable_ns = runnable_ns;
	e->span.blocked_ns = blocked_ns;
	e->span.arg[0] = arg[0];
	e->span.arg[1] = arg[1];
	e->span.syscall = (s16)nr;
	e->span.flags = flags;
	e->span.off_cpu = 1;
	e->stack_bytes = 0;
	e->newest = 0;
	e->wake_ns = 0;
	e->queue_cpu = 0;
	__builtin_memset(e->name, 0, sizeof e->name);
	if (want_stack) {
		if (!st->unseen)
			e->stack_bytes = (s32)bpf_get_task_stack(task, e->stack, sizeof e->stack, 0);
		if (owner == FT_PEER_WAIT)
			read_peer(task, st->peer_fd, e->name);
		else
			name_file(st, task, file, owner, e->name);
	}
	if (want_tracer) {
		__builtin_memcpy(e->name, st->tracer_comm, sizeof st->tracer_comm);
		st->reported_tracer = st->tracer;
	}
	if (want_holder) {
		/* It may have been moved: the holder of the CPU that it waited for counts. On that CPU the
		 * newest slice is another task's, on this CPU it is its own. */
		u32 cpu = st->queue_cpu & (FT_MAX_CPUS - 1);
		e->wake_ns = wake;
		e->queue_cpu = cpu;
		e->newest = cpus[cpu].newest + (&cpus[cpu] != c);
		__builtin_memcpy(e->slices, cpus[cpu].slices, sizeof e->slices);
		u64 oldest_ns = e->slices[(e->newest + 1) & (FT_CPU_SLICES - 1)].start_ns;
		bpf_ringbuf_submit(e, ring_flags());
		send_earlier_slices(cpu, wake, oldest_ns);
		return true;
	}
	bpf_ringbuf_submit(e, ring_flags());
	return true;
}

/* At the begin of a wait for the CPU: if it turns out to be due to a quota, this shows how much of it. */
static __always_inline void note_quota(struct thread_state *st, struct task_struct *task)
{
	st->quota_queue = NULL;
	if (!quota_in_force || !has_group_queue(task) || !may_be_throttled(task))
		return;
	st->quota_queue = BPF_CORE_READ(task, se.cfs_rq);
	st->throttled_before_ns = throttled_ns(st->quota_queue);
}

/* While it is stopped: when it runs again, the tracer may have released it. */
static __always_inline void note_tracer(struct thread_state *st, struct task_struct *task)
{
	struct task_struct *tracer = BPF_CORE_READ(task, parent);
	st->tracer = process_id_of(tracer);
	bpf_probe_read_kernel(st->tracer_comm, sizeof st->tracer_comm, tracer->comm);
}

/* Stores the system call that a thread waits in. Waits of a loop over io_uring delimit its iterations, even
 * with `exact`, which has programs in epoll's calls only. */
static __always_inline s64 note_call(struct thread_state *st, struct task_struct *task)
{
	struct pt_regs___user *regs = user_regs(task);
	s64 nr = (s64)BPF_CORE_READ(regs, CALL_NUMBER);
	if (nr != __NR_restart_syscall) { /* a call interrupted by a stop continues under that number */
		st->blocked_in = (s16)nr;
		st->blocked_on = BPF_CORE_READ(regs, CALL_ARG0);
	}
	st->in_wait = (!exact || nr == __NR_io_uring_enter) && waits_for_events(nr) &&
		      !works_on_ring(nr, st->off_state) && !st->client;
	st->in_futex = st->blocked_in == __NR_futex && !st->client;
	st->in_peer_wait = !st->depth && waits_for_peer(st, task, nr, st->blocked_on);
	st->lock_owner = st->lock_waker = 0;
	return nr;
}

static __always_inline void begin_wait(struct thread_state *st, struct task_struct *task, u64 now)
{
	s64 nr = note_call(st, task);
	if (st->depth) {
		abandon_stale(st, now, nr);
		if (st->depth) /* a fault within the call */
			st->in_wait = 0;
	}
	if (!call_forks(nr))
		st->fork_over = 0;
	if (waits_for_epoll(nr))
		note_loop(st, (u32)st->blocked_on, now);
	if (st->in_futex)
		note_lock(st);
	if (st->in_peer_wait)
		send_wait_stack(st, task, nr, now);
	else if (!st->depth && !st->in_wait)
		report_pipe(nr, now);
	if (st->in_wait)
		end_iteration(st, task, now, 0);
	else if (!exact)
		look_at_iteration(st, task, now, nr);
}

static __always_inline void switch_out(struct thread_state *st, struct task_struct *task, u64 now,
				       bool runnable, u32 state)
{
	charge(st, now);
	st->off_state = state;
	if (!runnable)
		begin_wait(st, task, now);
	else if (!exact)
		look_at_iteration(st, task, now, -1);
	st->ran_ns = task->se.sum_exec_runtime;
	st->waited_ns = finished_waits(task);
	st->off_cpu = 1;
	st->wake_ns = runnable ? now : 0;
	st->queued = runnable;
	st->moved = 0;
	if (runnable) {
		st->queue_cpu = bpf_get_smp_processor_id();
		note_quota(st, task);
	} else if (state & TASK_TRACED) {
		note_tracer(st, task);
	}
}

/* Accounts the interval off the CPU from mark_ns to `end`: blocked until `wake`, runnable after; `throttled`:
 * due to its quota; `here`: it gets this CPU now. Not inlined, because switch_in calls it twice. */
CHECKED_ONCE(__noinline)
int off_cpu(struct thread_state *st NEVER_NULL, struct task_struct *task A_TASK, bool here, u64 wake, u64 end)
{
	struct cpu_state *c = here ? this_cpu() : NULL;
	u64 start_ns = st->mark_ns, blocked_ns = wake - start_ns, runnable_ns = end - wake;
	u32 wait_owner = st->throttled ? FT_CPU_QUOTA : FT_RUN_QUEUE, owner = wait_owner;
	tally_roll(st, end);

	s64 nr = -1;
	u64 arg[2] = {};
	struct file *file = NULL;
	struct frame *f = top(st);
	u32 suspended_by = blocked_ns ? suspension_owner(task, st->off_state) : 0;
	if (f) {
		owner = suspended_by ? suspended_by : (u32)f->owner;
		if (blocked_ns && owner == FT_FAULT_OTHER)
			st->blocked = 1;
	} else if (blocked_ns) {
		nr = st->blocked_in;
		if (suspended_by)
			owner = suspended_by;
		else if (st->in_peer_wait)
			owner = FT_PEER_WAIT;
		else
			owner = blocked_owner(task, st->off_state, nr, st->blocked_on, &arg[0], &file);
	}
	if (owner == FT_PTRACED)
		arg[0] = st->tracer;
	else if (owner == FT_FROZEN)
		arg[0] = freezer_of(st->off_state);
	bool emitted = false;
	/* A load generator without work for less than a window: only whether it ran late matters. */
	bool rested = st->client && owner == FT_IDLE && end - start_ns < FT_TALLY_WINDOW_NS;
	if ((rested ? runnable_ns : end - start_ns) >= min_span_ns) {
		if (owner == FT_LOCK_WAIT && st->in_futex) {
			arg[0] = st->blocked_on;
			arg[1] = lock_threads(st, task);
		}
		emitted = emit_off_cpu(st, task, c, owner, nr, arg, file, wake, end);
		if (emitted)
			count(FT_COUNT_SPAN);
		else
			drop(FT_DROP_SLOT_SPAN + owner);
	}
	if (emitted) {
		if (!st->dirty)
			st->tally.start_ns = end;
	} else if (f) {
		f->blocked_ns += blocked_ns;
		f->runnable_ns += runnable_ns;
	} else {
		if (blocked_ns)
			tally_add(st, owner, blocked_ns);
		if (runnable_ns)
			tally_add(st, wait_owner, runnable_ns);
	}
	st->mark_ns = end;
	return 0;
}

/* When a thread that has been off the CPU since mark_ns became runnable, as known at `now`; 0: not yet. If no
 * program saw it, the scheduler's account tells. A queue's clock stands still where an idle CPU gets a
 * thread: such a wait of some microseconds is none. */
static __always_inline u64 runnable_since(const struct thread_state *st, struct task_struct *task, u64 now)
{
	if (st->wake_ns)
		return st->wake_ns;
	u64 waited_ns = all_waits(task) - st->waited_ns;
	if (!waited_ns)
		return 0;
	return now - st->mark_ns > waited_ns ? now - waited_ns : st->mark_ns;
}

/* Accounts the time off the CPU that ends now. The throttled part comes first: when its group has quota
 * again, the thread may still have to wait for the CPU holder. */
static __always_inline void switch_in(struct thread_state *st, struct task_struct *task, struct cpu_state *c,
				      u64 now)
{
	u64 start_ns = st->mark_ns, wake = runnable_since(st, task, now);
	if (!st->queued && !st->moved)
		st->queue_cpu = task_cpu(task);
	if (!wake || wake < start_ns || wake > now)
		wake = wake ? start_ns : now; /* a wakeup not seen: all of it counts as blocked */
	if (st->quota_queue) {
		u64 quota_ns = throttled_ns(st->quota_queue) - st->throttled_before_ns;
		st->quota_queue = NULL;
		if (quota_ns) {
			st->throttled = 1;
			off_cpu(st, task, false, wake, quota_ns < now - wake ? wake + quota_ns : now);
			st->throttled = 0;
			wake = st->mark_ns;
		}
	}
	if (st->mark_ns < now)
		off_cpu(st, task, c != NULL, wake, now);
	st->off_cpu = 0;
	st->wake_ns = 0;
	st->softirq = 0;
	if (st->in_wait) {
		st->in_wait = 0;
		begin_iteration(st, task, st->mark_ns, 0);
	} else if (!exact) {
		look_at_iteration(st, task, st->mark_ns, -1); /* the same one: it contains the wait */
	}
}

/* A thread leaves a CPU without a seen switch to it: after some tasks of a virtual machine's agent, switches
 * are not reported (6.18). The scheduler's account of its on-CPU time shows when it got the CPU. What it
 * waited for was stored at the begin; its stack of that time is gone. */
static __always_inline void came_unseen(struct thread_state *st, struct task_struct *task, u64 now)
{
	u64 ran_ns = task->se.sum_exec_runtime - st->ran_ns, off_ns = now - st->mark_ns;
	st->unseen = 1;
	switch_in(st, task, NULL, ran_ns < off_ns ? now - ran_ns : st->mark_ns);
	st->unseen = 0;
	count(FT_COUNT_SWITCH_UNSEEN);
}

#endif

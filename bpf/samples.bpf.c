/* SPDX-License-Identifier: GPL-2.0-only */
/* What a target's thread executes: sampled 249 times per second, and 999 times while an event-loop iteration
 * is long. In a virtual machine a timer interrupt costs 7 to 18 us, which is wasted while there is no stall.
 * The recorder sets the rate (loader/attach.h), and each sample contains its period. There is
 * one cpu-clock event per CPU instead of one per thread: nothing is added to the switch path, and a new
 * thread needs no event. The rate is not 250 Hz, so that samples don't run in step with a timer. Samples show
 * which functions a stall on the CPU was spent in. So the stack is copied once a thread has been in its
 * event-loop iteration for a while. Before that, and in threads without an event loop, the instruction's
 * address must mostly suffice, at a fiftieth of the bytes: a thread gets 50 stacks per second, from which the
 * analysis learns the callers of the other samples. The stack is unwound in user space, because servers are
 * built without frame pointers. */
#include "state.h" /* first: libbpf's headers need the integer types */

#include "counters.h"
#include "files.h"
#include "iteration.h"
#include "program.h"

enum {
	KERNEL_FRAMES = 48,
	HIGHEST_CALL = 1023,	   /* x32's numbers are far above: no server is known to use it */
	BRIEF_STACK_NS = 20000000, /* between two stacks of a thread in short iterations */
};

struct kernel_stack {
	u64 frames[KERNEL_FRAMES]; /* innermost first */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct kernel_stack);
} kernel_stacks SEC(".maps");

static __always_inline bool is_code(u64 address, u32 which)
{
	return address - kernel_code[which].begin < kernel_code[which].bytes;
}

/* The vector that this function handles; FT_SOFTIRQ_VECTORS: not known. */
static __always_inline u32 vector_of(u64 address)
{
	u32 vector = FT_SOFTIRQ_VECTORS;
#pragma unroll
	for (u32 i = 0; i < FT_SOFTIRQ_VECTORS; i++)
		if (is_code(address, FT_CODE_HANDLER + i) || is_code(address, FT_CODE_HANDLER_END + i))
			vector = i;
	return vector;
}

/* The vector of the soft interrupt that has been sampled on top of a target; FT_SOFTIRQ_VECTORS: none, one
 * that receives what the target itself sends (irq.bpf.c), or an unknown one. A global function: its loop is
 * checked once. */
__weak u32 sampled_softirq(struct bpf_perf_event_data *ctx)
{
	u32 zero = 0;
	struct kernel_stack *stack = bpf_map_lookup_elem(&kernel_stacks, &zero);
	if (!stack)
		return FT_SOFTIRQ_VECTORS;
	long bytes = bpf_get_stack(ctx, stack->frames, sizeof stack->frames, 0);
	u64 handler = 0;
	bool runs = false, own = false, foreign = false;
	for (u32 i = 0; i < KERNEL_FRAMES; i++) {
		if ((long)(i * sizeof(u64)) >= bytes)
			break;
		u64 address = stack->frames[i];
		if (!runs) {
			runs = is_code(address, FT_CODE_RUNNER);
			if (!runs)
				handler = address;
			continue;
		}
		own = is_code(address, FT_CODE_CALL);
		foreign = is_code(address, FT_CODE_INTERRUPT) || is_code(address, FT_CODE_INTERRUPT + 1);
		if (own || foreign)
			break;
	}
	if (!own && !foreign)
		return FT_SOFTIRQ_VECTORS;
	u32 vector = vector_of(handler);
	if (own && (vector == NET_RX || vector >= FT_SOFTIRQ_VECTORS))
		return FT_SOFTIRQ_VECTORS;
	this_cpu()->softirq_hits++;
	return vector;
}

/* While soft interrupts are sampled: a vector that two samples in a row have met has the time until a sample
 * meets it no more. Most are so short that a single sample says nothing of the time around it. Returns
 * the vector that is met now. */
static __always_inline u32 follow_softirq(struct bpf_perf_event_data *ctx, struct thread_state *st)
{
	u32 vector = was_in_user_mode(ctx) || st->off_cpu ? FT_SOFTIRQ_VECTORS : sampled_softirq(ctx);
	u8 met = vector < FT_SOFTIRQ_VECTORS ? (u8)(vector + 1) : 0;
	st->softirq = met == st->softirq_met ? met : 0;
	st->softirq_met = met;
	return vector;
}

/* The owner of this time. The event's own interrupt is the innermost, if the timer's interrupts are
 * traced. */
static __always_inline u8 sampled_owner(const struct thread_state *st)
{
	struct cpu_state *c = this_cpu();
	u32 open = c->interrupt_depth;
	if (open && c->open[(open - 1) & (FT_OPEN_INTERRUPTS - 1)].kind == FT_HARD_INTERRUPTS)
		open--;
	if (open)
		return (u8)interrupt_owner(c->open[(open - 1) & (FT_OPEN_INTERRUPTS - 1)].kind);
	u32 depth = st->depth;
	if (depth == 0 || depth > FT_FRAME_DEPTH)
		return FT_OWN_CODE;
	return (u8)st->frames[(depth - 1) & (FT_FRAME_DEPTH - 1)].owner;
}

/* The system call that the kernel executes for the thread. An interrupt or a fault in user mode has left -1
 * in the call's number, and in an interrupt on top of a call the time does not belong to the call. */
static __always_inline void fill_call(struct ft_event_sample *e, struct task_struct *task,
				      struct pt_regs___user *regs, s64 number)
{
	e->syscall = -1;
	e->file = FT_SAMPLE_FILE_UNKNOWN;
	__builtin_memset(e->pad, 0, sizeof e->pad);
	if (e->owner != FT_OWN_CODE || number < 0)
		return;
	e->syscall = (s16)number;
	e->file = (u8)file_kind(file_of(task, BPF_CORE_READ(regs, CALL_ARG0)));
}

static __always_inline void fill_sample(struct ft_event_sample *e, struct bpf_perf_event_data *ctx,
					const struct thread_state *st, u64 now, struct task_struct *task,
					struct pt_regs___user *regs, s64 number, u8 owner)
{
	e->type = FT_EVENT_SAMPLE;
	e->tid = st->tid;
	e->tgid = st->tgid;
	e->cpu = (u16)bpf_get_smp_processor_id();
	e->owner = owner;
	e->in_kernel = !was_in_user_mode(ctx);
	e->t_ns = now;
	e->ip = BPF_CORE_READ(regs, USER_IP);
	e->period = (u8)this_cpu()->sample_period;
	e->brief = 0;
	fill_call(e, task, regs, number);
}

/* The number of the system call that the kernel executes for the thread, or -1. */
static __always_inline s64 call_in(struct bpf_perf_event_data *ctx, struct pt_regs___user *regs)
{
	if (was_in_user_mode(ctx))
		return -1;
	s64 number = (s64)BPF_CORE_READ(regs, CALL_NUMBER);
	return number <= HIGHEST_CALL ? number : -1;
}

/* The current thread's state, even if its switch to this CPU was not seen (came_unseen). NULL: not a
 * target. */
static __always_inline struct thread_state *sampled_state(struct task_struct *task)
{
	struct thread_state *st = current_state();
	if (!st)
		st = state_of(task);
	return st && !st->client ? st : NULL;
}

SEC("perf_event")
int cpu_sample(struct bpf_perf_event_data *ctx)
{
	COUNT_RUN(cpu_sample);
	struct task_struct *task = current_task();
	struct thread_state *st = sampled_state(task);
	if (!st)
		return 0;
	u64 now = bpf_ktime_get_ns();
	struct pt_regs___user *regs = user_regs(task);
	s64 number = call_in(ctx, regs);
	if (!st->off_cpu)
		note_loop_in(st, regs, number, now);
	if (!exact && !st->busy && !st->off_cpu)
		look_at_iteration(st, task, now, number);
	u64 start_ns = st->off_cpu ? 0 : st->iteration_start_ns;
	bool brief = !start_ns || now - start_ns < sample_stack_ns;
	u8 owner = sampled_owner(st);
	if (softirqs_sampled) {
		u32 vector = follow_softirq(ctx, st);
		if (vector < FT_SOFTIRQ_VECTORS)
			owner = (u8)interrupt_owner(vector);
	} else {
		st->softirq = st->softirq_met = 0;
	}
	count(FT_COUNT_SAMPLE);
	count_stretch(st, task, now);
	if (brief && now < st->next_stack_ns) {
		struct ft_event_sample *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
		if (!e) {
			drop(FT_DROP_SLOT_SAMPLE);
			return 0;
		}
		fill_sample(e, ctx, st, now, task, regs, number, owner);
		bpf_ringbuf_submit(e, ring_flags());
		return 0;
	}
	struct ft_event_sample_stack *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
	if (!e) {
		drop(FT_DROP_SLOT_SAMPLE);
		return 0;
	}
	fill_sample(&e->sample, ctx, st, now, task, regs, number, owner);
	e->sample.type = FT_EVENT_SAMPLE_STACK;
	e->sample.brief = brief;
	st->next_stack_ns = now + BRIEF_STACK_NS;
	u64 sp = BPF_CORE_READ(regs, USER_SP);
	e->sp = sp;
	save_registers(e->saved, regs);
	e->kernel_bytes = e->sample.in_kernel ? (s32)bpf_get_stack(ctx, e->kernel, sizeof e->kernel, 0) : 0;
	e->stack_bytes = 0;
	u8 busy = st->busy;
	st->busy = 1; /* a read beyond the stack's end is a fault, but not one of the thread's */
#pragma unroll
	for (u32 at = 0; at < FT_USER_STACK_BYTES; at += FT_USER_STACK_CHUNK) {
		if (bpf_probe_read_user(&e->stack[at], FT_USER_STACK_CHUNK, (void *)(sp + at)))
			break;
		e->stack_bytes = at + FT_USER_STACK_CHUNK;
	}
	st->busy = busy;
	/* Sent at once while the rate is slow, so that it can be raised. */
	bpf_ringbuf_submit(e, !brief && this_cpu()->sample_period > fast_period ? BPF_RB_FORCE_WAKEUP
										: ring_flags());
	return 0;
}

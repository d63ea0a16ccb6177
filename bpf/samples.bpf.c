/* SPDX-License-Identifier: GPL-2.0-only */
/* What a target's thread is executing, looked at 999 times a second.
 *
 * One cpu-clock event per CPU rather than one per thread: nothing is added to the switch path, and a thread
 * that has just begun needs no event of its own. Not 1000 Hz, so that samples don't march in step with a
 * timer.
 *
 * Samples are taken to say what a stall of the server's own code was. So the stack is copied only once a
 * thread has been in its turn of the event loop for a while; before that, and in threads without an event
 * loop, the instruction's address has to do, at a fiftieth of the bytes. The stack is unwound in user space,
 * because servers are built without frame pointers.
 */
#include "state.h" /* first: libbpf's headers want the integer types */

#include "files.h"

enum {
	USER_MODE = 3,	     /* the privilege level in the code segment's selector */
	HIGHEST_CALL = 1023, /* x32's numbers lie far above: nobody has seen a server made of it */
};

/* Whose time this is. The event's own interrupt is the innermost frame if the timer's interrupts are traced.
 */
static __always_inline u8 sampled_owner(const struct thread_state *st)
{
	u32 depth = st->depth;
	if (depth == 0 || depth > FT_FRAME_DEPTH)
		return FT_OWN_CODE;
	u64 owner = st->frames[(depth - 1) & (FT_FRAME_DEPTH - 1)].owner;
	if (owner != FT_HARDIRQ)
		return (u8)owner;
	return depth == 1 ? FT_OWN_CODE : (u8)st->frames[(depth - 2) & (FT_FRAME_DEPTH - 1)].owner;
}

/* Which system call the kernel runs for the thread. An interrupt or a fault that came in user mode has left
 * -1 where a call's number lies, and in an interrupt on top of a call the time is not the call's. */
static __always_inline void fill_call(struct ft_event_sample *e, struct task_struct *task,
				      struct pt_regs___x86 *regs)
{
	e->syscall = -1;
	e->file = FT_SAMPLE_FILE_UNKNOWN;
	__builtin_memset(e->pad, 0, sizeof e->pad);
	if (!e->in_kernel || e->owner != FT_OWN_CODE)
		return;
	s64 number = (s64)BPF_CORE_READ(regs, orig_ax);
	if (number < 0 || number > HIGHEST_CALL)
		return;
	e->syscall = (s16)number;
	e->file = (u8)file_kind(file_of(task, BPF_CORE_READ(regs, di)));
}

static __always_inline void fill_sample(struct ft_event_sample *e, struct bpf_perf_event_data *ctx,
					const struct thread_state *st, u64 now, struct task_struct *task,
					struct pt_regs___x86 *regs)
{
	e->type = FT_EVENT_SAMPLE;
	e->tid = st->tid;
	e->tgid = st->tgid;
	e->cpu = (u16)bpf_get_smp_processor_id();
	e->owner = sampled_owner(st);
	e->in_kernel = (ctx->regs.cs & USER_MODE) == 0;
	e->t_ns = now;
	e->ip = BPF_CORE_READ(regs, ip);
	fill_call(e, task, regs);
}

SEC("perf_event")
int cpu_sample(struct bpf_perf_event_data *ctx)
{
	struct thread_state *st = current_state();
	if (!st)
		return 0;
	u64 now = bpf_ktime_get_ns();
	struct task_struct *task =
	    has_task_storage ? bpf_get_current_task_btf() : (struct task_struct *)bpf_get_current_task();
	struct pt_regs___x86 *regs = user_regs(task);
	u64 start_ns = st->iteration_start_ns;
	count(FT_COUNT_SAMPLE);
	if (!start_ns || now - start_ns < sample_stack_ns) {
		struct ft_event_sample *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
		if (!e) {
			drop(FT_DROP_SLOT_SAMPLE);
			return 0;
		}
		fill_sample(e, ctx, st, now, task, regs);
		bpf_ringbuf_submit(e, ring_flags());
		return 0;
	}
	struct ft_event_sample_stack *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
	if (!e) {
		drop(FT_DROP_SLOT_SAMPLE);
		return 0;
	}
	fill_sample(&e->sample, ctx, st, now, task, regs);
	e->sample.type = FT_EVENT_SAMPLE_STACK;
	u64 sp = BPF_CORE_READ(regs, sp);
	e->sp = sp;
	e->bp = BPF_CORE_READ(regs, bp);
	e->bx = BPF_CORE_READ(regs, bx);
	e->r12 = BPF_CORE_READ(regs, r12);
	e->r13 = BPF_CORE_READ(regs, r13);
	e->r14 = BPF_CORE_READ(regs, r14);
	e->r15 = BPF_CORE_READ(regs, r15);
	e->kernel_bytes = e->sample.in_kernel ? (s32)bpf_get_stack(ctx, e->kernel, sizeof e->kernel, 0) : 0;
	e->stack_bytes = 0;
	u8 busy = st->busy;
	st->busy = 1; /* a read past the stack's end is a fault, but none of the thread's */
#pragma unroll
	for (u32 at = 0; at < FT_USER_STACK_BYTES; at += FT_USER_STACK_CHUNK) {
		if (bpf_probe_read_user(&e->stack[at], FT_USER_STACK_CHUNK, (void *)(sp + at)))
			break;
		e->stack_bytes = at + FT_USER_STACK_CHUNK;
	}
	st->busy = busy;
	bpf_ringbuf_submit(e, ring_flags());
	return 0;
}

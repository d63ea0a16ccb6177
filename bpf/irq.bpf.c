/* SPDX-License-Identifier: GPL-2.0-only */
/* Hardware and soft interrupts that run on top of a target thread and take its time. Whether the current task
 * is a target is checked first: these programs run for every interrupt of the host. Softirqs on top of other
 * tasks are not traced; they affect a target as run-queue wait or not at all. Device interrupts come from
 * irq_handler_*, local ones (the timer, calls from other CPUs) from irq_vectors:*, which a kernel may lack.
 * The vector does not show why another CPU sent an interrupt: `reschedule` only checks the run queue;
 * `call_function` and `call_function_single` run a function, mainly TLB shootdowns, and since 5.8 also
 * wakeups from another CPU. Hyper-V's timer (hyperv_stimer0) has a vector but no tracepoint. These are the
 * most frequent programs, so the thread's account is looked up only for an interrupt that is long enough to
 * be reported, or when a window of the account is over. Interrupts of a CPU nest like a stack.
 *
 * Not all soft interrupts take the thread's time: what a thread sends over loopback, the kernel receives at
 * the end of the same call. Such a net_rx is the thread's own work and stays in the account of what it was
 * in.
 *
 * On a host with very many soft interrupts their programs are detached while nothing suggests that they delay
 * a target (loader/system/softirqs.c). Then CPU samples see them (samples.bpf.c). */
#include "program.h" /* first: libbpf's headers need the integer types */

#include "iteration.h"

enum {
	AT_ONCE_NS = 1000, /* between a hardware interrupt and its soft interrupts, which follow at its end */
};

/* Calls that send: data, or acknowledgements of what they read. */
static __always_inline bool call_sends(s64 nr)
{
	switch (nr) {
	case __NR_write:
	case __NR_writev:
	case __NR_sendto:
	case __NR_sendmsg:
	case __NR_sendmmsg:
	case __NR_sendfile:
	case __NR_connect:
	case __NR_shutdown:
	case __NR_close:
	case __NR_read:
	case __NR_readv:
	case __NR_recvfrom:
	case __NR_recvmsg:
	case __NR_io_uring_enter:
		return true;
	}
	return false;
}

/* Whether net_rx is for packets that the current target sends. It runs in a call that sends, and no hardware
 * interrupt has just ended, which may have brought packets of others. Both are required, because a kernel may
 * lack tracepoints of some interrupts. The clock is read only if an interrupt has ended since the last
 * net_rx. */
static __always_inline bool is_own_work(struct cpu_state *c)
{
	if (!c->target || c->interrupt_depth || !hard_interrupts)
		return false;
	struct pt_regs___user *regs = user_regs(current_task());
	u64 hard_end_ns = c->hard_end_ns;
	c->hard_end_ns = 0;
	return call_sends((s64)BPF_CORE_READ(regs, CALL_NUMBER)) &&
	       (!hard_end_ns || bpf_ktime_get_ns() - hard_end_ns > AT_ONCE_NS);
}

static __always_inline int begin(u64 kind, u64 arg)
{
	struct cpu_state *c = this_cpu();
	if (!c->target)
		return 0;
	u32 depth = c->interrupt_depth;
	if (depth >= FT_OPEN_INTERRUPTS) {
		count(FT_COUNT_IRQ_UNPAIRED);
		return 0;
	}
	struct open_interrupt *o = &c->open[depth & (FT_OPEN_INTERRUPTS - 1)];
	o->inner_ns = 0;
	o->arg = arg;
	o->kind = kind;
	o->start_ns = bpf_ktime_get_ns();
	c->interrupt_depth = depth + 1;
	return 0;
}

/* Sends a long interrupt. False: no account, or the ring was full. */
static __noinline bool hand_over(const struct open_interrupt *o, u32 outer, u64 duration_ns, u64 own_ns)
{
	struct thread_state *st = current_state();
	u32 owner = interrupt_owner(o->kind);
	if (!st)
		return false;
	struct ft_event_span *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
	if (!e) {
		drop(FT_DROP_SLOT_SPAN + owner);
		return false;
	}
	fill_span(e, st, owner, o->start_ns, duration_ns);
	e->on_cpu_ns = own_ns;
	e->arg[0] = o->arg;
	e->depth = (u8)(st->depth + outer);
	bpf_ringbuf_submit(e, ring_flags());
	count(FT_COUNT_SPAN);
	return true;
}

static __noinline int bring_up_to_date(u64 now)
{
	struct thread_state *st = current_state_in_interrupt();
	if (st) {
		st->busy = 1;
		charge(st, now);
		st->busy = 0;
	}
	return 0;
}

static __always_inline int end(u64 kind)
{
	struct cpu_state *c = this_cpu();
	u32 depth = c->interrupt_depth;
	if (!depth || depth > FT_OPEN_INTERRUPTS)
		return 0;
	struct open_interrupt *o = &c->open[(depth - 1) & (FT_OPEN_INTERRUPTS - 1)];
	if (o->kind != kind) {
		count(FT_COUNT_IRQ_UNPAIRED);
		c->interrupt_depth = 0;
		return 0;
	}
	u64 inner_ns, now, now_inner_ns = *(volatile u64 *)&o->inner_ns;
	/* An interrupt on top of this program (soft interrupts leave them enabled) must be in both sums or in
	 * neither. Otherwise its time would be subtracted from a sum without it, and the result would be
	 * negative. */
	for (int i = 0; i < 3; i++) {
		inner_ns = now_inner_ns;
		now = bpf_ktime_get_ns();
		now_inner_ns = *(volatile u64 *)&o->inner_ns;
		if (now_inner_ns == inner_ns)
			break;
	}
	u64 duration_ns = now - o->start_ns, own_ns = duration_ns > inner_ns ? duration_ns - inner_ns : 0;
	if (depth > 1)
		c->open[(depth - 2) & (FT_OPEN_INTERRUPTS - 1)].inner_ns += duration_ns;
	c->interrupted_ns += own_ns;
	bool handed_over = duration_ns >= min_span_ns && hand_over(o, depth - 1, duration_ns, own_ns);
	if (!handed_over) {
		struct interrupts *i = &c->interrupts[kind];
		i->total_ns += own_ns;
		i->count++;
		if (own_ns > i->max_ns)
			i->max_ns = at_most_32_bits(own_ns);
	}
	c->interrupt_depth = depth - 1;
	if (kind == FT_HARD_INTERRUPTS)
		c->hard_end_ns = now;
	/* An account that ends with the recording must reach as far as its spans. */
	if (depth == 1 && (handed_over || now - c->last_fold_ns >= FT_TALLY_WINDOW_NS))
		bring_up_to_date(now);
	return 0;
}

SEC("tp_btf/softirq_entry")
int COUNTED_PROG(softirq_entry, unsigned int vector)
{
	if (!softirqs_timed || vector >= FT_SOFTIRQ_VECTORS || (vector == NET_RX && is_own_work(this_cpu())))
		return 0;
	return begin(vector, vector);
}

SEC("tp_btf/softirq_exit")
int COUNTED_PROG(softirq_exit, unsigned int vector)
{
	return vector < FT_SOFTIRQ_VECTORS ? end(vector) : 0;
}

SEC("tp_btf/irq_handler_entry")
int COUNTED_PROG(irq_handler_entry, int irq)
{
	return begin(FT_HARD_INTERRUPTS, (u64)(u32)irq);
}

SEC("tp_btf/irq_handler_exit")
int COUNTED_PROG(irq_handler_exit)
{
	return end(FT_HARD_INTERRUPTS);
}

/* Bit 32 of the argument distinguishes a local vector from a device's interrupt number. */
#define LOCAL_VECTOR(name)                                                                                   \
	SEC("tp_btf/" #name "_entry")                                                                        \
	int COUNTED_PROG(name##_entry, int vector)                                                           \
	{                                                                                                    \
		return begin(FT_HARD_INTERRUPTS, 1ull << 32 | (u32)vector);                                  \
	}                                                                                                    \
	SEC("tp_btf/" #name "_exit")                                                                         \
	int COUNTED_PROG(name##_exit)                                                                        \
	{                                                                                                    \
		return end(FT_HARD_INTERRUPTS);                                                              \
	}

LOCAL_VECTOR(local_timer)
LOCAL_VECTOR(reschedule)
LOCAL_VECTOR(call_function)
LOCAL_VECTOR(call_function_single)
LOCAL_VECTOR(irq_work)

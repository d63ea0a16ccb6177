/* SPDX-License-Identifier: GPL-2.0-only */
/* Hardware and soft interrupts that run on top of a target thread and so take its time.
 *
 * Whether the current task is a target is tested before anything else: these fire for every interrupt of
 * the host. Softirqs on top of other tasks are not traced; they reach a target as run-queue wait or not
 * at all. Device interrupts come from irq_handler_*, local ones (the timer, calls of other CPUs) from
 * irq_vectors:*, which a kernel may lack. What another CPU calls for its vector doesn't tell: `reschedule`
 * only asks to look at the run queue, `call_function` and `call_function_single` run something, TLB
 * shoot-downs above all, and since 5.8 wakeups from another CPU as well. Hyper-V's timer (hyperv_stimer0) has
 * a vector, but no tracepoint.
 */
#include "state.h" /* first: libbpf's headers want the integer types */

#include <bpf/bpf_tracing.h>

static __always_inline int begin(u32 owner, u64 arg0)
{
	return frame_begins(current_state_in_interrupt(), owner, arg0);
}

static __always_inline int end(u32 owner)
{
	return frame_ends(current_state_in_interrupt(), owner);
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_entry, unsigned int vector)
{
	return vector < FT_SOFTIRQ_VECTORS ? begin(FT_SOFTIRQ + vector, vector) : 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_exit, unsigned int vector)
{
	return vector < FT_SOFTIRQ_VECTORS ? end(FT_SOFTIRQ + vector) : 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_handler_entry, int irq)
{
	return begin(FT_HARDIRQ, (u64)(u32)irq);
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_handler_exit)
{
	return end(FT_HARDIRQ);
}

/* Bit 32 of the argument tells a local vector from a device's interrupt number. */
#define LOCAL_VECTOR(name)                                                                                   \
	SEC("tp_btf/" #name "_entry")                                                                        \
	int BPF_PROG(name##_entry, int vector)                                                               \
	{                                                                                                    \
		return begin(FT_HARDIRQ, 1ull << 32 | (u32)vector);                                          \
	}                                                                                                    \
	SEC("tp_btf/" #name "_exit")                                                                         \
	int BPF_PROG(name##_exit)                                                                            \
	{                                                                                                    \
		return end(FT_HARDIRQ);                                                                      \
	}

LOCAL_VECTOR(local_timer)
LOCAL_VECTOR(reschedule)
LOCAL_VECTOR(call_function)
LOCAL_VECTOR(call_function_single)
LOCAL_VECTOR(irq_work)

/* SPDX-License-Identifier: GPL-2.0-only */
/* Page faults of target threads: begin, what was allocated inside, end and kind.
 *
 * There is no tracepoint at a fault's end. The perf software events page-faults-min and -maj fire there,
 * on every handled fault and in its thread, so a BPF program on them is the end. The kind follows from the
 * error code at the begin (was the page present, was it a write), from the allocations in between, and
 * from which of the two events it was:
 *
 *   major                                        page-in
 *   present, write, a page was allocated         cow-copy
 *   present, write, none                         cow-reuse
 *   absent, a zeroed page was allocated          page-zero
 *   absent, nothing zeroed, and it waited        page-in (somebody else's read, readahead, brought the page)
 *   absent, nothing zeroed, anonymous mapping    page-zero (the shared zero page)
 *   absent, nothing zeroed, file mapping         page-file
 *
 * A begin with no end (it became a signal) is given back at the next begin or system call.
 */
#include "state.h" /* first: libbpf's headers want the integer types */

#include <bpf/bpf_tracing.h>

enum { PRESENT = 1, WRITE = 2 }; /* x86-64 page fault error code */
enum { MIGRATE_MOVABLE = 1 };	 /* page tables and socket buffers are not movable, user pages are */
enum gfp_bits { ___GFP_ZERO_BIT = 8 };

static __always_inline int begin(u64 address, u64 error_code)
{
	struct thread_state *st = current_state();
	/* Busy: one of our own programs looked where there is nothing (samples.bpf.c at a stack's end). It
	 * gets no page, so there is no end to it either. */
	if (!st || st->busy || !st->fault_ends)
		return 0;
	st->busy = 1;
	if (top_is(st, FT_FAULT_OTHER))
		abandon_top(st);
	st->alloc_seen = st->alloc_zero = st->alloc_order = st->blocked = 0;
	push(st, bpf_ktime_get_ns(), FT_FAULT_OTHER, address, error_code);
	st->busy = 0;
	count(FT_COUNT_FAULT_BEGIN);
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(page_fault_user, unsigned long address, void *regs, unsigned long error_code)
{
	return begin(address, error_code);
}

/* A read() into a shared page after fork faults in kernel mode. */
SEC("tp_btf/page_fault_kernel")
int BPF_PROG(page_fault_kernel, unsigned long address, void *regs, unsigned long error_code)
{
	return begin(address, error_code);
}

SEC("tp_btf/mm_page_alloc")
int BPF_PROG(mm_page_alloc, void *page, unsigned int order, unsigned int gfp, int migratetype)
{
	if (migratetype != MIGRATE_MOVABLE)
		return 0;
	struct thread_state *st = current_state();
	if (!st || !top_is(st, FT_FAULT_OTHER))
		return 0;
	u32 zero_bit = ___GFP_ZERO_BIT; /* until 6.9, when it became an enum that BTF knows */
	if (bpf_core_enum_value_exists(enum gfp_bits, ___GFP_ZERO_BIT))
		zero_bit = bpf_core_enum_value(enum gfp_bits, ___GFP_ZERO_BIT);
	st->alloc_seen = 1;
	st->alloc_order = (u8)order;
	if (gfp >> zero_bit & 1)
		st->alloc_zero = 1;
	return 0;
}

static long note_mapping(struct task_struct *task, struct vm_area_struct *vma, bool *anonymous)
{
	*anonymous = !BPF_CORE_READ(vma, vm_file);
	return 0;
}

static __always_inline u32 kind_of_fault(struct thread_state *st, const struct frame *f, bool major,
					 bool find_vma)
{
	if (major)
		return FT_PAGE_IN;
	if (f->arg[1] & PRESENT)
		return !(f->arg[1] & WRITE) ? FT_FAULT_OTHER : st->alloc_seen ? FT_COW_COPY : FT_COW_REUSE;
	if (st->alloc_zero)
		return FT_PAGE_ZERO;
	if (st->blocked)
		return FT_PAGE_IN;
	bool anonymous = false;
	if (find_vma)
		bpf_find_vma(bpf_get_current_task_btf(), f->arg[0], note_mapping, &anonymous, 0);
	return anonymous ? FT_PAGE_ZERO : FT_PAGE_FILE;
}

static __always_inline int end(bool major, bool find_vma)
{
	struct thread_state *st = current_state();
	if (!st)
		return 0;
	if (!st->fault_ends) {
		st->fault_ends = 1; /* a load generator's, whose account opened before its perf events */
		return 0;
	}
	if (!top_is(st, FT_FAULT_OTHER)) {
		count(FT_COUNT_FAULT_UNPAIRED);
		return 0;
	}
	st->busy = 1;
	struct frame *f = top(st);
	if (f) {
		u32 kind = kind_of_fault(st, f, major, find_vma);
		u64 pages = st->alloc_seen ? 1ull << (st->alloc_order & 31) : 0;
		f->arg[1] = (f->arg[1] & 0xffffffff) | pages << 32;
		u64 now = bpf_ktime_get_ns();
		charge(st, now);
		finish_top(st, now, kind, 0);
	}
	st->busy = 0;
	count(FT_COUNT_FAULT_END);
	return 0;
}

SEC("perf_event")
int fault_end_minor(struct bpf_perf_event_data *ctx)
{
	return end(false, true);
}

/* For kernels without bpf_find_vma() (before 5.17). A program of its own, not a constant in the one above:
 * 5.10 refuses a program that holds a callback, even in code that never runs. */
SEC("perf_event")
int fault_end_minor_old(struct bpf_perf_event_data *ctx)
{
	return end(false, false);
}

SEC("perf_event")
int fault_end_major(struct bpf_perf_event_data *ctx)
{
	return end(true, false);
}

/* SPDX-License-Identifier: GPL-2.0-only */
/* Page faults of target threads (begin, allocations inside, end and kind), and at the end of this file
 * reclaim.
 *
 * There is no tracepoint at a fault's end. The perf software events page-faults-min and -maj fire there, on
 * every handled fault and in its thread, so a BPF program on them marks the end. The begin is the first of
 * these that the kernel has: tracepoints (x86-64), a function that can be traced (arm64, Linux 6.4), the perf
 * software event page-faults. The kind follows from the reason at the begin (was the page present, was it a
 * write), from the allocations in between, and from which of the two events it was:
 *
 *   major                                         page-in
 *   a zeroed page was allocated, or a huge one    page-zero
 *   present, write, none allocated                cow-reuse
 *   present, write, of a file, no child lives     page-file (a private mapping's page, before its first copy)
 *   present, write, any other                     cow-copy
 *   absent, and it waited                         page-in (read by another thread, or by readahead)
 *   absent, anonymous mapping                     page-zero (the shared zero page)
 *   absent, file mapping                          page-file
 *
 * A present page that is written to and gets a zeroed one is the shared zero page: memory that was read
 * before it was written to (a hash table that is walked, then filled). The kernel zeroes huge pages without
 * asking the allocator to, and never copies one: it splits those that are shared.
 *
 * The software event at the begin has no reason. The kind then follows from what the fault did:
 *
 *   major                                         page-in
 *   a zeroed page was allocated, or a huge one    page-zero
 *   another was allocated while a child lives     cow-copy
 *   it waited                                     page-in
 *   another was allocated, file mapping           page-file
 *   another was allocated                         cow-copy
 *   none, file mapping                            page-file
 *   none, anonymous mapping without pages         page-zero (the shared zero page)
 *   none, anonymous mapping                       cow-reuse
 *
 * A fault while faults are disabled (a profiler that follows a stack through invalid addresses, a futex word
 * that is not mapped) has no end: the code that disabled faults gets an error. A fault that became a signal
 * has no end either. Its frame is removed at the next begin or system call. */
#include "state.h" /* first: libbpf's headers need the integer types */

#include "iteration.h"
#include "program.h"

/* Page tables and socket buffers are not movable, user pages are. The tracepoint's migrate type does not
 * tell: a kernel with little memory for its size of pages (3 GB if they have 64 kB) does not group pages by
 * it. */
enum { GFP_MOVABLE = 1 << 3 };
enum gfp_bits { ___GFP_ZERO_BIT = 8 };
enum { HUGE_ORDER = 9 }; /* 2 MB */

static __always_inline int begin(u64 address, u64 error_code, bool in_kernel)
{
	struct thread_state *st = current_state();
	/* Busy: one of our own programs read an invalid address (samples.bpf.c at a stack's end). It gets no
	 * page, so the fault has no end. Neither has a fault at an address that no mapping covers. */
	if (!st || st->busy || !this_cpu()->has_events || (s64)address < 0)
		return 0;
	if (in_kernel && BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), pagefault_disabled))
		return 0;
	st->busy = 1;
	u64 now = bpf_ktime_get_ns();
	if (top_is(st, FT_FAULT_OTHER)) {
		charge(st, now);
		abandon_top(st, now);
	}
	st->alloc_seen = st->alloc_zero = st->alloc_order = st->blocked = 0;
	push(st, now, FT_FAULT_OTHER, address, error_code);
	st->busy = 0;
	count(FT_COUNT_FAULT_BEGIN);
	return 0;
}

SEC("tp_btf/page_fault_user")
int TARGETS_PROG(page_fault_user, unsigned long address, void *regs, unsigned long error_code)
{
	return begin(address, fault_reason(error_code), false);
}

/* A read() into a shared page after fork faults in kernel mode. */
SEC("tp_btf/page_fault_kernel")
int TARGETS_PROG(page_fault_kernel, unsigned long address, void *regs, unsigned long error_code)
{
	return begin(address, fault_reason(error_code), true);
}

/* arm64's aborts: nearly all of them are page faults. */
SEC("fentry/do_mem_abort")
int TARGETS_PROG(fault_begin, unsigned long address, unsigned long syndrome)
{
	u64 reason = fault_reason(syndrome);
	return begin(address, reason, !(reason & FAULT_USER));
}

/* Before the kernel looks for the page. */
SEC("perf_event")
int fault_begin_event(struct bpf_perf_event_data *ctx)
{
	COUNT_RUN(fault_begin_event);
	bool user = was_in_user_mode(ctx);
	return begin(ctx->addr, user ? FAULT_USER : 0, !user);
}

/* A fork's first page is the new address space's top page table, a few microseconds after its entry (for a
 * new thread, it is its stack). It ends with sched_process_fork. */
static __always_inline int fork_begins(struct thread_state *st)
{
	struct pt_regs___user *regs = user_regs(current_task());
	s64 nr = (s64)BPF_CORE_READ(regs, CALL_NUMBER);
	if (!call_forks(nr)) {
		st->fork_over = 0;
		return 0;
	}
	if (st->fork_over || st->busy || top_is(st, FT_FORK))
		return 0;
	st->busy = 1;
	u64 now = bpf_ktime_get_ns();
	if (st->depth) {
		charge(st, now);
		abandon_stale(st, now, nr);
	}
	look_at_iteration(st, current_task(), now, nr);
	push(st, now, FT_FORK, 0, nr == __NR_clone ? BPF_CORE_READ(regs, CALL_ARG0) : 0);
	st->busy = 0;
	return 0;
}

SEC("tp_btf/mm_page_alloc")
int TARGETS_PROG(mm_page_alloc, void *page, unsigned int order, unsigned int gfp)
{
	bool movable = gfp & GFP_MOVABLE;
	if (!movable && exact)
		return 0;
	struct thread_state *st = current_state();
	if (!st)
		return 0;
	if (!movable)
		return fork_begins(st);
	if (!top_is(st, FT_FAULT_OTHER))
		return 0;
	u32 zero_bit = ___GFP_ZERO_BIT; /* until 6.9, when it became an enum in BTF */
	if (bpf_core_enum_value_exists(enum gfp_bits, ___GFP_ZERO_BIT))
		zero_bit = bpf_core_enum_value(enum gfp_bits, ___GFP_ZERO_BIT);
	st->alloc_seen = 1;
	st->alloc_order = (u8)order;
	if (gfp >> zero_bit & 1)
		st->alloc_zero = 1;
	return 0;
}

enum mapping { MAPPING_UNKNOWN, MAPPING_ANONYMOUS, MAPPING_FILE, MAPPING_FORKED_FILE };

static long note_mapping(struct task_struct *task, struct vm_area_struct *vma, enum mapping *mapping)
{
	*mapping = !BPF_CORE_READ(vma, vm_file) ? MAPPING_ANONYMOUS
		   : may_share_pages(vma)	? MAPPING_FORKED_FILE
						: MAPPING_FILE;
	return 0;
}

static __always_inline enum mapping mapping_of(const struct frame *f, bool find_vma)
{
	enum mapping mapping = MAPPING_UNKNOWN;
	if (find_vma)
		bpf_find_vma(bpf_get_current_task_btf(), f->arg[0], note_mapping, &mapping, 0);
	return mapping;
}

static __always_inline bool has_children(struct task_struct *task)
{
	return BPF_CORE_READ(task, children.next) != &task->children;
}

static long note_pages(struct task_struct *task, struct vm_area_struct *vma, bool *pages)
{
	*pages = BPF_CORE_READ(vma, anon_vma) != NULL;
	return 0;
}

/* Whether an anonymous mapping has pages. */
static __always_inline bool has_pages(const struct frame *f)
{
	bool pages = false;
	bpf_find_vma(bpf_get_current_task_btf(), f->arg[0], note_pages, &pages, 0);
	return pages;
}

/* Whether a copied page was a private file mapping's own page. Looking up a mapping takes a lock and, to
 * release it, an interrupt to this CPU, which costs more than the copy. If the process has a child, the copy
 * counts as caused by it without a lookup. */
static __always_inline bool copied_from_file(const struct frame *f, bool find_vma)
{
	if (!find_vma)
		return false;
	struct task_struct *task = bpf_get_current_task_btf();
	if (has_children(task) || has_children(task->group_leader))
		return false;
	return mapping_of(f, find_vma) == MAPPING_FILE;
}

static __always_inline u32 kind_of_fault(struct thread_state *st, const struct frame *f, bool major,
					 bool find_vma)
{
	bool present = f->arg[1] & FAULT_PRESENT, write = f->arg[1] & FAULT_WRITE;
	if (major)
		return FT_PAGE_IN;
	if (present && !write)
		return FT_FAULT_OTHER;
	if (st->alloc_zero || st->alloc_order >= HUGE_ORDER)
		return FT_PAGE_ZERO;
	if (present && !st->alloc_seen)
		return FT_COW_REUSE;
	if (present)
		return copied_from_file(f, find_vma) ? FT_PAGE_FILE : FT_COW_COPY;
	if (st->blocked)
		return FT_PAGE_IN;
	return mapping_of(f, find_vma) == MAPPING_ANONYMOUS ? FT_PAGE_ZERO : FT_PAGE_FILE;
}

/* Without a reason. */
static __always_inline u32 kind_by_effect(struct thread_state *st, const struct frame *f, bool major,
					  bool find_vma)
{
	struct task_struct *task = current_task();
	if (major)
		return FT_PAGE_IN;
	if (st->alloc_zero || st->alloc_order >= HUGE_ORDER)
		return FT_PAGE_ZERO;
	if (st->alloc_seen && (has_children(task) || has_children(BPF_CORE_READ(task, group_leader))))
		return FT_COW_COPY;
	if (st->blocked)
		return FT_PAGE_IN;
	enum mapping mapping = mapping_of(f, find_vma);
	if (st->alloc_seen)
		return mapping == MAPPING_FILE ? FT_PAGE_FILE : FT_COW_COPY;
	if (mapping != MAPPING_ANONYMOUS)
		return FT_PAGE_FILE;
	return has_pages(f) ? FT_COW_REUSE : FT_PAGE_ZERO;
}

static __always_inline int end(bool major, bool find_vma, bool by_effect)
{
	struct thread_state *st = current_state();
	if (!st)
		return 0;
	if (!top_is(st, FT_FAULT_OTHER)) {
		count(FT_COUNT_FAULT_UNPAIRED);
		return 0;
	}
	st->busy = 1;
	u64 now = bpf_ktime_get_ns(); /* before the kind is determined, which takes our time */
	struct frame *f = top(st);
	if (f) {
		charge(st, now);
		u32 kind = by_effect ? kind_by_effect(st, f, major, find_vma)
				     : kind_of_fault(st, f, major, find_vma);
		u64 pages = st->alloc_seen ? 1ull << (st->alloc_order & 31) : 0;
		f->arg[1] = (f->arg[1] & 0xffffffff) | pages << 32;
		finish_top(st, now, kind, 0);
	}
	st->busy = 0;
	count(FT_COUNT_FAULT_END);
	return 0;
}

SEC("perf_event")
int fault_end_minor(struct bpf_perf_event_data *ctx)
{
	COUNT_RUN(fault_end_minor);
	return end(false, true, false);
}

/* For kernels without bpf_find_vma() (before 5.17). A separate program instead of a constant in the one
 * above: 5.10 refuses a program that contains a callback, even in code that never runs. */
SEC("perf_event")
int fault_end_minor_old(struct bpf_perf_event_data *ctx)
{
	COUNT_RUN(fault_end_minor_old);
	return end(false, false, false);
}

/* In place of the two above if the begin has no reason. */
SEC("perf_event")
int fault_end_by_effect(struct bpf_perf_event_data *ctx)
{
	COUNT_RUN(fault_end_by_effect);
	return end(false, true, true);
}

SEC("perf_event")
int fault_end_by_effect_old(struct bpf_perf_event_data *ctx)
{
	COUNT_RUN(fault_end_by_effect_old);
	return end(false, false, true);
}

SEC("perf_event")
int fault_end_major(struct bpf_perf_event_data *ctx)
{
	COUNT_RUN(fault_end_major);
	return end(true, false, false);
}

/* The last step of a CPU that comes online, before threads run on it, and the first one of a CPU that goes
 * offline, after which the kernel removes its perf events. Suspending takes all CPUs but one offline. */
enum cpuhp_state { CPUHP_AP_ACTIVE = 1 };

SEC("tp_btf/cpuhp_enter")
int COUNTED_PROG(cpuhp_enter, unsigned int cpu, int target, int step)
{
	if (step != (int)bpf_core_enum_value(enum cpuhp_state, CPUHP_AP_ACTIVE))
		return 0;
	cpus[cpu & (FT_MAX_CPUS - 1)].has_events = 0;
	if (target >= step)
		cpus_came++;
	return 0;
}

/* Direct reclaim (of the host and of a memory cgroup) and compaction, performed by the target itself because
 * it needed memory. */
#define RECLAIM_PROGS(name)                                                                                  \
	SEC("tp_btf/mm_vmscan_" #name "_begin")                                                              \
	int TARGETS_PROG(name##_begin, int order)                                                            \
	{                                                                                                    \
		return frame_begins(current_state(), FT_RECLAIM, (u64)(u32)order);                           \
	}                                                                                                    \
	SEC("tp_btf/mm_vmscan_" #name "_end")                                                                \
	int TARGETS_PROG(name##_end)                                                                         \
	{                                                                                                    \
		return frame_ends(current_state(), FT_RECLAIM);                                              \
	}

RECLAIM_PROGS(direct_reclaim)
RECLAIM_PROGS(memcg_reclaim)

SEC("tp_btf/mm_compaction_begin")
int TARGETS_PROG(compaction_begin)
{
	return frame_begins(current_state(), FT_COMPACTION, 0);
}

SEC("tp_btf/mm_compaction_end")
int TARGETS_PROG(compaction_end)
{
	return frame_ends(current_state(), FT_COMPACTION);
}

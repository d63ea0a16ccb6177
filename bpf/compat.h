/* SPDX-License-Identifier: GPL-2.0-only */
/* Every difference between kernel versions that these programs know, each with its version. A decision made
 * here at load time is a constant for the verifier, so the other branch is never checked. The oldest
 * supported kernel is 5.10. */
#ifndef FORKTAIL_BPF_COMPAT_H
#define FORKTAIL_BPF_COMPAT_H

#include "bpf/events.h"
#include "machine/machine.h"
#include "types.h"

/* Set by the loader from the kernel's BTF before loading. */
extern const volatile bool has_task_storage;   /* 5.13: for tracing programs; a hash by tid before */
extern const volatile bool has_prev_state_arg; /* 5.18: sched_switch passes the previous task's state */
extern const volatile bool
    has_block_queue_arg;		     /* until 5.11 block_rq_issue had the queue before the request */
extern const volatile bool has_task_pt_regs; /* 5.15: bpf_task_pt_regs() */
/* The scheduler's account of waits on run queues is always kept (5.14) and can be read: no program needs to
 * see that a thread was put on one. */
extern const volatile bool has_scheduler_waits;

/* sched_process_exit has the same arguments but another time: until 6.15 it fired after the memory was torn
 * down, since 6.16 it fires before that. A thread's account ends with it on every kernel, so the tear-down
 * (milliseconds for a large snapshot child) is in the child's account only on older kernels. Its cost to the
 * server is reported on both: a wait for the CPU names the child as the CPU holder. */

/* task_struct.state was renamed to __state in 5.14. */
static __always_inline unsigned int task_state(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return (unsigned int)BPF_CORE_READ((struct task_struct___old *)task, state);
}

/* The CPU a task is on, or is queued on. It moved to thread_info in 5.16. */
static __always_inline u32 task_cpu(struct task_struct *task)
{
	if (bpf_core_field_exists(task->thread_info.cpu))
		return BPF_CORE_READ(task, thread_info.cpu);
	return BPF_CORE_READ((struct task_struct___old *)task, cpu);
}

/* The user-mode registers at the top of the kernel stack. Before 5.15 computed from the stack's base. */
static __always_inline struct pt_regs___user *user_regs(struct task_struct *task)
{
	if (has_task_pt_regs)
		return (struct pt_regs___user *)bpf_task_pt_regs(task);
	return (struct pt_regs___user *)((char *)BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES -
					 USER_REGS_BYTES);
}

/* Whether a private mapping may share pages with a parent or a child: it existed when one of them forked.
 * Before 6.0, having anonymous pages is taken as a sign of that. */
static __always_inline bool may_share_pages(struct vm_area_struct *vma)
{
	struct anon_vma *own = BPF_CORE_READ(vma, anon_vma);
	if (!own || !bpf_core_field_exists(own->num_children))
		return own != NULL;
	return BPF_CORE_READ(own, num_children) > 1 || BPF_CORE_READ(own, parent) != own;
}

/* How long a run queue has been throttled by CPU quotas so far, in ns of its run queue's clock. Only
 * differences have a meaning. Before 6.6 it is a sum over the quotas' groups and all CPUs, which grows when a
 * throttle ends. A kernel without CONFIG_CFS_BANDWIDTH has none of the fields. */
static __always_inline u64 throttled_ns(struct cfs_rq *queue)
{
	if (bpf_core_field_exists(queue->throttled_clock_self_time)) {
		u64 since = BPF_CORE_READ(queue, throttled_clock_self);
		u64 now = BPF_CORE_READ(queue, rq, clock);
		return BPF_CORE_READ(queue, throttled_clock_self_time) +
		       (since && now > since ? now - since : 0);
	}
	u64 sum = 0;
	struct task_group *group = BPF_CORE_READ(queue, tg);
	if (!bpf_core_field_exists(group->cfs_bandwidth.throttled_time))
		return 0;
	for (int level = 0; level < 8 && group; level++) {
		sum += BPF_CORE_READ(group, cfs_bandwidth.throttled_time);
		group = BPF_CORE_READ(group, parent);
	}
	return sum;
}

/* How long a task has spent on run queues so far, in ns of the run queue's clock, without the wait under way;
 * 0: not known. */
static __always_inline u64 finished_waits(struct task_struct *task)
{
	return has_scheduler_waits ? task->sched_info.run_delay : 0;
}

/* The same with the wait under way. */
static __always_inline u64 all_waits(struct task_struct *task)
{
	u64 queued = has_scheduler_waits ? task->sched_info.last_queued : 0;
	u64 clock = queued ? task->se.cfs_rq->rq->clock : 0;
	return finished_waits(task) + (clock > queued ? clock - queued : 0);
}

/* A kernel without CONFIG_FAIR_GROUP_SCHED has no groups and no quotas. */
static __always_inline bool has_group_queue(struct task_struct *task)
{
	return bpf_core_field_exists(task->se.cfs_rq);
}

/* Since 6.18 a throttled task is removed from its run queue on its way back to user mode, and is marked.
 * Before, its group was removed with all its tasks, so any wait for the CPU may turn out to be a throttle. */
static __always_inline bool may_be_throttled(struct task_struct *task)
{
	return !bpf_core_field_exists(task->throttled) || BPF_CORE_READ(task, throttled);
}

enum { TASK_INTERRUPTIBLE = 1 };

/* Whether a task off the CPU is held by a freezer. Version 1 cgroups and the host's freezer: a separate state
 * since 6.1; before, a flag in addition to an uninterruptible sleep, which has not been used by processes
 * since. Version 2 cgroups: an interruptible sleep of a task that its cgroup counts as frozen; other waits
 * that count (for a vfork's child) are not interruptible. */
static __always_inline bool is_frozen(struct task_struct *task, u32 state)
{
	enum { TASK_UNINTERRUPTIBLE = 2, TASK_FROZEN = 0x8000, PF_FROZEN = 0x10000 };
	if (state & TASK_FROZEN)
		return true;
	if (state == TASK_UNINTERRUPTIBLE)
		return task->flags & PF_FROZEN;
	return state & TASK_INTERRUPTIBLE && bpf_core_field_exists(task->frozen) &&
	       BPF_CORE_READ_BITFIELD(task, frozen);
}

/* Which freezer it is, by the state of a frozen task. */
static __always_inline u64 freezer_of(u32 state)
{
	return state & TASK_INTERRUPTIBLE ? FT_FREEZER_V2 : FT_FREEZER_V1;
}

enum pageflags { PG_head };

/* Bytes of a folio. A large one stores its order in the second page's flags (6.6), before that in a separate
 * byte. */
static __always_inline u64 folio_bytes(struct folio *folio)
{
	unsigned long flags = 0, order = 0;
	bpf_probe_read_kernel(&flags, sizeof flags, folio); /* its first member on every kernel */
	if (!bpf_core_enum_value_exists(enum pageflags, PG_head) ||
	    !(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
		return PAGE_BYTES;
	if (bpf_core_field_exists(((struct folio___old *)0)->_folio_order))
		order = BPF_CORE_READ((struct folio___old *)folio, _folio_order);
	else if (bpf_core_field_exists(folio->_flags_1))
		order = BPF_CORE_READ(folio, _flags_1) & 0xff;
	return PAGE_BYTES << (order & 31);
}

/* The disk moved from request.rq_disk to request_queue.disk in 5.15 and left the request in 5.17. */
static __always_inline struct gendisk *request_disk(struct request *rq)
{
	if (bpf_core_field_exists(((struct request___old *)0)->rq_disk))
		return BPF_CORE_READ((struct request___old *)rq, rq_disk);
	return BPF_CORE_READ(rq, q, disk);
}

#endif

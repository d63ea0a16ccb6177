/* SPDX-License-Identifier: GPL-2.0-only */
/* Ids of tasks: in the recorder's pid namespace, which identifies threads, because everything the recorder
 * does with an id (/proc, perf events, --pid) uses it; of tasks that are not in it; and in the task's own
 * namespace, which its memory contains. Not inlined, because it is rarely called. */
#ifndef FORKTAIL_BPF_IDS_H
#define FORKTAIL_BPF_IDS_H

#include "recording/owners.h"
#include "state.h"

/* The id of a task in one of its namespaces. Level 0 is the initial one. */
static __always_inline struct upid id_at(struct pid *pid, u32 level)
{
	struct upid *numbers = __builtin_preserve_access_index(&pid->numbers[0]);
	struct upid n = {};
	bpf_probe_read_kernel(&n, sizeof n, numbers + level);
	return n;
}

/* In the recorder's namespace; 0: not visible from there. */
static __noinline u32 number_of(struct pid *pid)
{
	enum { MAX_PID_NS_LEVEL = 32 };
	if (!pid_ns)
		return (u32)id_at(pid, 0).nr;
	u32 level = BPF_CORE_READ(pid, level);
	for (u32 i = 0; i <= MAX_PID_NS_LEVEL && i <= level; i++) {
		struct upid n = id_at(pid, i);
		if (BPF_CORE_READ(n.ns, ns.inum) == pid_ns)
			return (u32)n.nr;
	}
	return 0;
}

static __noinline u32 id_of(struct task_struct *task)
{
	return pid_ns ? number_of(BPF_CORE_READ(task, thread_pid)) : (u32)BPF_CORE_READ(task, pid);
}

static __always_inline u32 process_id_of(struct task_struct *task)
{
	return id_of(BPF_CORE_READ(task, group_leader));
}

/* Of any task of the host, as a recording has it. `of_host`: its id in the initial pid namespace, which most
 * callers have without a look at the task. */
static __always_inline u32 id_of_any(struct task_struct *task, u32 of_host)
{
	if (!pid_ns || !of_host)
		return of_host;
	u32 id = id_of(task);
	return id ? id : of_host | FT_TASK_OUTSIDE;
}

/* In its own namespace, as gettid() returns it. */
static __noinline __attribute__((unused)) u32 own_id_of(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	return (u32)id_at(pid, BPF_CORE_READ(pid, level)).nr;
}

static __always_inline bool is_target(u32 tgid)
{
	u32 *as = bpf_map_lookup_elem(&targets, &tgid);
	return as && *as == FT_TRACED_TARGET;
}

/* Whether the current task is a target's, and the id of its process. */
static __always_inline bool target_runs(u32 *tgid)
{
	*tgid = process_id_of(bpf_get_current_task_btf());
	return is_target(*tgid);
}

#endif

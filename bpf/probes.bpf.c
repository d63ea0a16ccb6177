/* SPDX-License-Identifier: GPL-2.0-only */
/* Places in programs that the user named: functions, from entry to return, and static probes (USDT). A
 * separate object, because it is loaded only if there are any. Each hit costs the process an exception, so
 * what is asked for decides the cost; a frequent place is cut to a number of events per time, and the rest is
 * counted. */
#define PROGRAM_ROW FT_PROBE_PROGRAM_ROW
#include "program.h" /* first: libbpf's headers need the integer types */

#include "bpf/probe_events.h"
#include "ids.h"

#include <bpf/usdt.bpf.h>

const volatile __u32 pid_ns = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, FT_PROBE_RING);
} probes_ring SEC(".maps");

/* Shared with the other object. */
struct targets_map targets SEC(".maps");

/* A function that a thread is in. Of one that calls itself, the outermost call counts: the others have a
 * lower stack pointer. Calls may end without a return (longjmp), and the kernel does not see the return of
 * some deep ones, so they are not counted. */
struct call_key {
	u64 thread, began_ns; /* the thread's start: ids are used again */
	u64 probe;
};
struct call {
	u64 since_ns;
	u64 stack;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct call_key);
	__type(value, struct call);
} calls SEC(".maps");

/* By probe: its window, hits in it, and hits over the limit of a window. */
__u64 window_since_ns[FT_PROBES_MAX], window_hits[FT_PROBES_MAX], beyond[FT_PROBES_MAX];
__u64 lost; /* no space in the ring */
__u64 program_runs[FT_MAX_CPUS][PROGRAM_ROW];

char gpl[] SEC("license") = "GPL";

/* Whether the current process is a target, or a child of one. */
static __always_inline bool is_targets(struct task_struct *task, u32 *tgid)
{
	return target_runs(tgid) || is_target(process_id_of(BPF_CORE_READ(task, group_leader, real_parent)));
}

/* Windows of several CPUs may be mixed up: the limit is about right. */
static __always_inline bool is_within_limit(u32 probe, u64 now)
{
	if (now - window_since_ns[probe] > FT_PROBE_WINDOW_NS) {
		window_since_ns[probe] = now;
		window_hits[probe] = 0;
	}
	if (window_hits[probe]++ < FT_PROBE_WINDOW_EVENTS)
		return true;
	__sync_fetch_and_add(&beyond[probe], 1);
	return false;
}

static __always_inline void report(struct task_struct *task, u32 tgid, u32 probe, u64 since, u64 now)
{
	if (probe >= FT_PROBES_MAX || !is_within_limit(probe, now))
		return;
	struct ft_probe_hit hit = {
	    .t_ns = since, .duration_ns = now - since, .probe = probe, .tid = id_of(task), .tgid = tgid};
	if (bpf_ringbuf_output(&probes_ring, &hit, sizeof hit, BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&lost, 1);
}

static __always_inline struct call_key key_of(struct task_struct *task, u64 probe)
{
	return (struct call_key){bpf_get_current_pid_tgid(), BPF_CORE_READ(task, start_time), probe};
}

SEC("uprobe")
int probe_enters(struct pt_regs *ctx)
{
	COUNT_RUN(probe_enters);
	u32 tgid;
	if (!is_targets(bpf_get_current_task_btf(), &tgid))
		return 0;
	struct call_key key = key_of(bpf_get_current_task_btf(), bpf_get_attach_cookie(ctx));
	struct call *inside = bpf_map_lookup_elem(&calls, &key);
	if (inside && PT_REGS_SP(ctx) < inside->stack)
		return 0;
	struct call call = {bpf_ktime_get_ns(), PT_REGS_SP(ctx)};
	bpf_map_update_elem(&calls, &key, &call, BPF_ANY);
	return 0;
}

SEC("uretprobe")
int probe_returns(struct pt_regs *ctx)
{
	COUNT_RUN(probe_returns);
	u32 tgid;
	struct task_struct *task = bpf_get_current_task_btf();
	struct call_key key = key_of(task, bpf_get_attach_cookie(ctx));
	struct call *inside = bpf_map_lookup_elem(&calls, &key);
	if (!inside || PT_REGS_SP(ctx) < inside->stack)
		return 0;
	if (is_targets(task, &tgid))
		report(task, tgid, (u32)key.probe, inside->since_ns, bpf_ktime_get_ns());
	bpf_map_delete_elem(&calls, &key);
	return 0;
}

SEC("usdt")
int probe_reached(struct pt_regs *ctx)
{
	COUNT_RUN(probe_reached);
	u32 tgid;
	struct task_struct *task = bpf_get_current_task_btf();
	if (!is_targets(task, &tgid))
		return 0;
	const u64 now = bpf_ktime_get_ns();
	report(task, tgid, (u32)bpf_usdt_cookie(ctx), now, now);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only */
/* Direct reclaim (of the host and of a memory cgroup) and compaction, done by the target itself because
 * it wanted memory. */
#include "state.h" /* first: libbpf's headers want the integer types */

#include <bpf/bpf_tracing.h>

static __always_inline int begin(u32 owner, u64 arg0)
{
	struct thread_state *st = current_state();
	if (!st)
		return 0;
	st->busy = 1;
	push(st, bpf_ktime_get_ns(), owner, arg0, 0);
	st->busy = 0;
	return 0;
}

static __always_inline int end(u32 owner)
{
	struct thread_state *st = current_state();
	if (!st)
		return 0;
	st->busy = 1;
	pop(st, bpf_ktime_get_ns(), owner);
	st->busy = 0;
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(direct_reclaim_begin, int order)
{
	return begin(FT_RECLAIM, (u64)(u32)order);
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(direct_reclaim_end)
{
	return end(FT_RECLAIM);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int BPF_PROG(memcg_reclaim_begin, int order)
{
	return begin(FT_RECLAIM, (u64)(u32)order);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(memcg_reclaim_end)
{
	return end(FT_RECLAIM);
}

SEC("tp_btf/mm_compaction_begin")
int BPF_PROG(compaction_begin)
{
	return begin(FT_COMPACTION, 0);
}

SEC("tp_btf/mm_compaction_end")
int BPF_PROG(compaction_end)
{
	return end(FT_COMPACTION);
}

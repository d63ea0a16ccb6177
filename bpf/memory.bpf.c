/* SPDX-License-Identifier: GPL-2.0-only */
/* Direct reclaim (of the host and of a memory cgroup) and compaction, performed by the target itself because
 * it needed memory. */
#include "program.h"
#include "state.h" /* first: libbpf's headers need the integer types */

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int UNPREEMPTED_PROG(direct_reclaim_begin, int order)
{
	return frame_begins(current_state(), FT_RECLAIM, (u64)(u32)order);
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int UNPREEMPTED_PROG(direct_reclaim_end)
{
	return frame_ends(current_state(), FT_RECLAIM);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int UNPREEMPTED_PROG(memcg_reclaim_begin, int order)
{
	return frame_begins(current_state(), FT_RECLAIM, (u64)(u32)order);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int UNPREEMPTED_PROG(memcg_reclaim_end)
{
	return frame_ends(current_state(), FT_RECLAIM);
}

SEC("tp_btf/mm_compaction_begin")
int UNPREEMPTED_PROG(compaction_begin)
{
	return frame_begins(current_state(), FT_COMPACTION, 0);
}

SEC("tp_btf/mm_compaction_end")
int UNPREEMPTED_PROG(compaction_end)
{
	return frame_ends(current_state(), FT_COMPACTION);
}

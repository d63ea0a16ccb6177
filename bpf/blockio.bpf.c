/* SPDX-License-Identifier: GPL-2.0-only */
/* Block requests of the whole host, from issue to completion: what the disk did while a target waited for it,
 * and for which process. They are rare compared to requests to a server, so all of them are recorded. */
#include "state.h" /* first: libbpf's headers need the integer types */

#include "ids.h"
#include "iteration.h"
#include "program.h"

struct issued {
	u64 start_ns;
	u32 tid;
	u32 bytes;
	u64 sector;
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct issued);
} in_flight SEC(".maps");

SEC("tp_btf/block_rq_issue")
int block_rq_issue(u64 *ctx)
{
	COUNT_RUN(block_rq_issue);
	struct request *rq = (struct request *)(has_block_queue_arg ? ctx[1] : ctx[0]);
	u64 key = (u64)rq;
	struct issued i = {.start_ns = bpf_ktime_get_ns(),
			   .tid = id_of_any(current_task(), (u32)bpf_get_current_pid_tgid())};
	i.bytes = BPF_CORE_READ(rq, __data_len);
	i.sector = BPF_CORE_READ(rq, __sector);
	bpf_get_current_comm(i.comm, sizeof i.comm);
	if (bpf_map_update_elem(&in_flight, &key, &i, BPF_ANY))
		drop(FT_DROP_SLOT_IO_TABLE);
	return 0;
}

/* A request may complete in parts. Its first part ends it here: that is when the device answered. */
SEC("tp_btf/block_rq_complete")
int COUNTED_PROG(block_rq_complete, struct request *rq, int error)
{
	u64 key = (u64)rq;
	struct issued *i = bpf_map_lookup_elem(&in_flight, &key);
	if (!i)
		return 0;
	struct ft_event_io *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
	if (e) {
		struct gendisk *disk = request_disk(rq);
		e->type = FT_EVENT_IO;
		e->tid = i->tid;
		e->start_ns = i->start_ns;
		e->duration_ns = bpf_ktime_get_ns() - i->start_ns;
		e->sector = i->sector;
		e->bytes = i->bytes;
		e->dev = (u32)BPF_CORE_READ(disk, major) << 20 | (u32)BPF_CORE_READ(disk, first_minor);
		e->op = (u8)BPF_CORE_READ(rq, cmd_flags);
		e->error = error != 0;
		e->pad0 = 0;
		e->pad1 = 0;
		__builtin_memcpy(e->comm, i->comm, sizeof e->comm);
		bpf_ringbuf_submit(e, ring_flags());
	} else {
		drop(FT_DROP_SLOT_IO);
	}
	bpf_map_delete_elem(&in_flight, &key);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only */
/* Which processes write to files, and how much, on the whole host: page cache pages that become dirty, in the
 * process that dirties them. A disk gets them later from a writeback thread, or from the first process that
 * calls fsync, so block requests alone don't show their source. Added up per process and device, and sent
 * every 100 ms or 1 MB. */
#include "state.h" /* first: libbpf's headers need the integer types */

#include "ids.h"
#include "iteration.h"
#include "program.h"

#define HAND_OVER_NS 100000000ull
#define HAND_OVER_BYTES (1ull << 20)

/* Per CPU, so that threads of a process don't contend. When it is full, the least active writers are
 * evicted. The recorder takes all entries at intervals, which has what a process wrote last. A page that is
 * added at that instant on another CPU may be missed. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_PERCPU_HASH);
	__uint(max_entries, FT_MAX_WRITERS);
	__type(key, struct ft_writes_key);
	__type(value, struct ft_writes_value);
} writers SEC(".maps");

static __always_inline void hand_over(const struct ft_writes_key *who, struct ft_writes_value *w)
{
	struct ft_event_writes *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
	if (e) {
		e->type = FT_EVENT_WRITES;
		e->tgid = who->tgid;
		e->start_ns = w->start_ns;
		e->end_ns = w->end_ns;
		e->bytes = w->bytes;
		e->dev = who->dev;
		e->pad = 0;
		__builtin_memcpy(e->comm, w->comm, sizeof e->comm);
		bpf_ringbuf_submit(e, ring_flags());
	} else {
		drop(FT_DROP_SLOT_WRITES);
	}
	w->bytes = 0;
}

static __always_inline int dirtied(u64 bytes, struct address_space *mapping)
{
	if (!mapping || closing_ns)
		return 0;
	struct ft_writes_key who = {.tgid = (u32)(bpf_get_current_pid_tgid() >> 32)};
	if (pid_ns)
		who.tgid = id_of_any(BPF_CORE_READ(current_task(), group_leader), who.tgid);
	struct gendisk *disk = BPF_CORE_READ(mapping, host, i_sb, s_bdev, bd_disk);
	if (disk)
		who.dev = (u32)BPF_CORE_READ(disk, major) << 20 | (u32)BPF_CORE_READ(disk, first_minor);
	u64 now = bpf_ktime_get_ns();
	struct ft_writes_value *w = bpf_map_lookup_elem(&writers, &who);
	if (!w) {
		struct ft_writes_value none = {};
		bpf_map_update_elem(&writers, &who, &none, BPF_ANY);
		w = bpf_map_lookup_elem(&writers, &who);
		if (!w) {
			drop(FT_DROP_SLOT_WRITES);
			return 0;
		}
	}
	if (w->bytes && now - w->start_ns >= HAND_OVER_NS)
		hand_over(&who, w);
	if (!w->bytes) {
		w->start_ns = now;
		bpf_get_current_comm(w->comm, sizeof w->comm);
	}
	w->bytes += bytes;
	w->end_ns = now;
	if (w->bytes >= HAND_OVER_BYTES)
		hand_over(&who, w);
	return 0;
}

SEC("tp_btf/writeback_dirty_folio")
int COUNTED_PROG(writeback_dirty_folio, struct folio *folio, struct address_space *mapping)
{
	return dirtied(folio_bytes(folio), mapping);
}

/* Its name until 5.17, when there were no large folios to write to. */
SEC("tp_btf/writeback_dirty_page")
int COUNTED_PROG(writeback_dirty_page, void *page, struct address_space *mapping)
{
	return dirtied(PAGE_BYTES, mapping);
}

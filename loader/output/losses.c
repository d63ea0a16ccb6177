/* SPDX-License-Identifier: MIT */
/* Losses are counters that only grow. The growth between two reads becomes a record. */
#include "loader/output/losses.h"

#include <stdbool.h>

/* What the slots after those of spans count. */
static const struct {
	uint32_t source, detail;
} drop_slots[FT_DROP_SLOTS] = {
    [FT_DROP_SLOT_TALLY] = {FT_DROP_RING, FT_DROP_TALLY},
    [FT_DROP_SLOT_IO] = {FT_DROP_RING, FT_DROP_BLOCK_IO},
    [FT_DROP_SLOT_IO_TABLE] = {FT_DROP_IO, 0},
    [FT_DROP_SLOT_THREAD_EVENT] = {FT_DROP_RING, FT_DROP_THREAD_EVENT},
    [FT_DROP_SLOT_THREAD_STATE] = {FT_DROP_THREAD, 0},
    [FT_DROP_SLOT_DEPTH] = {FT_DROP_STACK, 0},
    [FT_DROP_SLOT_SAMPLE] = {FT_DROP_RING, FT_DROP_CPU_SAMPLE},
    [FT_DROP_SLOT_WRITES] = {FT_DROP_RING, FT_DROP_WRITES},
    [FT_DROP_SLOT_UNWIND] = {FT_DROP_UNWIND, 0},
    [FT_DROP_SLOT_REQUESTS] = {FT_DROP_RING, FT_DROP_REQUESTS},
};

void losses_begin(struct losses *l, uint64_t now_ns)
{
	*l = (struct losses){.drops_ns = now_ns, .missed_ns = now_ns};
}

void losses_dropped(struct losses *l, struct ft_writer *w, const uint64_t drops[FT_DROP_SLOTS],
		    uint64_t now_ns)
{
	for (uint32_t i = 0; i < FT_DROP_SLOTS; i++) {
		if (drops[i] == l->drops[i])
			continue;
		bool span = i < FT_DROP_SLOT_TALLY;
		struct ft_drop d = {.start_ns = l->drops_ns,
				    .end_ns = now_ns,
				    .count = drops[i] - l->drops[i],
				    .source = span ? FT_DROP_RING : drop_slots[i].source,
				    .detail = span ? i - FT_DROP_SLOT_SPAN : drop_slots[i].detail};
		ft_writer_record(w, FT_BLOCK_DROP, &d);
		l->drops[i] = drops[i];
	}
	l->drops_ns = now_ns;
}

void losses_missed(struct losses *l, struct ft_writer *w, const struct program_cost *costs, size_t count,
		   uint64_t now_ns)
{
	for (uint32_t i = 0; i < count; i++) {
		if (costs[i].missed == l->missed[i])
			continue;
		struct ft_drop d = {.start_ns = l->missed_ns,
				    .end_ns = now_ns,
				    .count = costs[i].missed - l->missed[i],
				    .source = FT_DROP_MISSED,
				    .detail = i};
		ft_writer_record(w, FT_BLOCK_DROP, &d);
		l->missed[i] = costs[i].missed;
	}
	l->missed_ns = now_ns;
}

uint64_t losses_total(const struct losses *l)
{
	uint64_t total = 0;
	for (int i = 0; i < FT_DROP_SLOTS; i++)
		total += l->drops[i];
	for (int i = 0; i < PROGRAMS_MAX; i++)
		total += l->missed[i];
	return total;
}

/* SPDX-License-Identifier: MIT */
/* What a recording lacks because it was lost on the way. A loss is always written down, with the interval it
 * happened in: an explanation that didn't know of it would be wrong without saying so. */
#ifndef FORKTAIL_LOADER_LOSSES_H
#define FORKTAIL_LOADER_LOSSES_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"
#include "loader/attach/programs.h"
#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The counters as of the last look. */
struct losses {
	uint64_t drops[FT_DROP_SLOTS];
	uint64_t missed[PROGRAMS_MAX];
	uint64_t drops_ns, missed_ns; /* when that was */
};

void losses_begin(struct losses *l, uint64_t now_ns);

/* Writes what has been dropped since the last look, by enum ft_drop_slot. */
void losses_dropped(struct losses *l, struct ft_writer *w, const uint64_t drops[FT_DROP_SLOTS],
		    uint64_t now_ns);

/* Likewise runs of programs that the kernel has skipped: each is a system call, a switch or a fault that went
 * unseen. Always the same programs in the same order, PROGRAMS_MAX at most. */
void losses_missed(struct losses *l, struct ft_writer *w, const struct program_cost *costs, size_t count,
		   uint64_t now_ns);

/* All of both so far. */
uint64_t losses_total(const struct losses *l);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
/* What a recording lacks because events were lost. Each loss is recorded with the interval in which it
 * happened. Otherwise an explanation would be wrong without saying so. */
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

/* The counters as of the last read. */
struct losses {
	uint64_t drops[FT_DROP_SLOTS];
	uint64_t missed[PROGRAMS_MAX];
	uint64_t drops_ns, missed_ns; /* the time of that read */
};

void losses_begin(struct losses *l, uint64_t now_ns);

/* Writes the drops since the last read, indexed by enum ft_drop_slot. */
void losses_dropped(struct losses *l, struct ft_writer *w, const uint64_t drops[FT_DROP_SLOTS],
		    uint64_t now_ns);

/* Writes runs of programs that the kernel skipped: each is a system call, a switch or a fault that was not
 * seen. Pass the same programs in the same order each time, at most PROGRAMS_MAX. */
void losses_missed(struct losses *l, struct ft_writer *w, const struct program_cost *costs, size_t count,
		   uint64_t now_ns);

/* Total of drops and skipped runs so far. */
uint64_t losses_total(const struct losses *l);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
/* What a Redis server counted of each command since its start. */
#ifndef FORKTAIL_LOADGEN_OBSERVER_COMMANDS_H
#define FORKTAIL_LOADGEN_OBSERVER_COMMANDS_H

#include <hiredis/hiredis.h>
#include <stdint.h>

#include "observer_series.h"

/* {"kind":"command-stats"} from the answer to INFO commandstats, which is modified. */
void note_command_stats(struct observer_series *to, const char *run_id, char *info, uint64_t t_ns);
/* {"kind":"command-latency"} from the answer to LATENCY HISTOGRAM. */
void note_command_latency(struct observer_series *to, const char *run_id, const redisReply *histograms,
			  uint64_t t_ns);

#endif

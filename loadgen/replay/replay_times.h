/* SPDX-License-Identifier: MIT */
/* When the commands of a replay are due, if not at the times in the file. */
#ifndef FORKTAIL_LOADGEN_REPLAY_TIMES_H
#define FORKTAIL_LOADGEN_REPLAY_TIMES_H

#include "replay.h"

/* An append-only file has times in whole seconds; its commands are distributed over them. */
void replay_spread_seconds(struct replay *r);
/* From the first command to where -l starts again: an average gap after the last one. Never 0, otherwise all
 * rounds would be due at once. Recomputed whenever the records or their times change. */
void replay_set_span(struct replay *r);

#endif

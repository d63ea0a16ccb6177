/* SPDX-License-Identifier: MIT */
/* When the commands of a replay are due, where that is not what the file says as it stands. */
#ifndef FORKTAIL_LOADGEN_REPLAY_TIMES_H
#define FORKTAIL_LOADGEN_REPLAY_TIMES_H

#include "replay.h"

/* An append-only file's times are whole seconds; its commands are spread over theirs. */
void replay_spread_seconds(struct replay *r);
/* From the first command to where -l begins again: a usual gap behind the last. Never 0, or all rounds would
 * be due at once. Anew whenever the records or their times change. */
void replay_set_span(struct replay *r);

#endif

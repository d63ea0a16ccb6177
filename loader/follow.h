/* SPDX-License-Identifier: MIT */
/* Targets that start, restart or exit while the flight recorder runs. */
#ifndef FORKTAIL_LOADER_FOLLOW_H
#define FORKTAIL_LOADER_FOLLOW_H

#include "loader/recorder.h"

/* Called at every tick of the recorder: looks for targets once per second, or less often where that takes
 * long. */
void follow_tick(struct recorder *r);
/* Looks at the next tick, regardless of the cost. */
void follow_soon(struct recorder *r);

#endif

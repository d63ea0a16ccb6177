/* SPDX-License-Identifier: MIT */
/* What looks after a thread's connections by the clock: the time-out of requests, and a profile that lets
 * more or fewer connections send. */
#ifndef FORKTAIL_LOADGEN_CONNECTION_TIMERS_H
#define FORKTAIL_LOADGEN_CONNECTION_TIMERS_H

#include "loadgen/engine/load_thread.h"

/* Starts doing so, as far as the plan wants it. */
void connection_timers_start(struct load_thread *t);

#endif

/* SPDX-License-Identifier: MIT */
/* Time-based control of a thread's connections: the time-out of requests, and a profile that lets more or
 * fewer connections send. */
#ifndef FORKTAIL_LOADGEN_CONNECTION_TIMERS_H
#define FORKTAIL_LOADGEN_CONNECTION_TIMERS_H

#include "loadgen/engine/load_thread.h"

/* Starts these timers, as far as the plan needs them. */
void connection_timers_start(struct load_thread *t);

#endif

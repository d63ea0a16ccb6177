/* SPDX-License-Identifier: MIT */
/* The event loop of all load models except blocking_loops.c: their `init` and `run`. */
#ifndef FORKTAIL_LOADGEN_EVENT_LOOP_H
#define FORKTAIL_LOADGEN_EVENT_LOOP_H

#include "loadgen/engine/load_thread.h"

/* Creates the loop and what it watches besides connections. Negative errno. */
int event_loop_init(struct load_thread *t);
/* Calls the model's pump, and handles events until the load is finished. */
void event_loop_run(struct load_thread *t);

#endif

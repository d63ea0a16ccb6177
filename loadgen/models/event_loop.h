/* SPDX-License-Identifier: MIT */
/* The event loop that all load models but blocking_loops.c's have: their `init` and `run`. */
#ifndef FORKTAIL_LOADGEN_EVENT_LOOP_H
#define FORKTAIL_LOADGEN_EVENT_LOOP_H

#include "loadgen/engine/load_thread.h"

/* Makes the loop and what it watches beside connections. Negative errno. */
int event_loop_init(struct load_thread *t);
/* Has the model pump, and acts on events until the load is finished. */
void event_loop_run(struct load_thread *t);

#endif

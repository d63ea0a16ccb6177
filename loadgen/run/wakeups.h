/* SPDX-License-Identifier: MIT */
/* forktail load --intrinsic as a run: no server, only this host and how late it wakes its threads
 * (intrinsic.h), with the log, table and figures that a load has. */
#ifndef FORKTAIL_LOADGEN_WAKEUPS_H
#define FORKTAIL_LOADGEN_WAKEUPS_H

#include <stddef.h>

#include "run_state.h"

/* Makes the run's one operation, WAKE. 0, or negative and a sentence. */
int wakeups_build(struct run *r, char *error, size_t size);

/* Measures how late threads are woken, one per --threads (on --cpus in turn), for --duration or until Ctrl-C;
 * every wake-up goes to the log as a request, so that its percentiles are exact. */
void wakeups_measure(struct run *r);

#endif

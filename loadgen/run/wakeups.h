/* SPDX-License-Identifier: MIT */
/* forktail load --intrinsic as a run: without a server, only how late this host wakes its threads
 * (intrinsic.h), with the log, table and figures of a load. */
#ifndef FORKTAIL_LOADGEN_WAKEUPS_H
#define FORKTAIL_LOADGEN_WAKEUPS_H

#include <stddef.h>

#include "run_state.h"

/* Creates the run's only operation, WAKE. Returns 0, or negative and a sentence. */
int wakeups_build(struct run *r, char *error, size_t size);

/* Measures how late threads are woken, one per --threads (on --cpus, round robin), for --duration or until
 * Ctrl-C. Every wake-up is logged as a request, so that its percentiles are exact. */
void wakeups_measure(struct run *r);

#endif

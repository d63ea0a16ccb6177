/* SPDX-License-Identifier: MIT */
/* forktail load --intrinsic: no server, only this host. */
#ifndef FORKTAIL_LOADGEN_PROBE_H
#define FORKTAIL_LOADGEN_PROBE_H

#include <stddef.h>

#include "phase.h"

/* Makes the run's one operation, WAKE. 0, or negative and a sentence. */
int probe_build(struct run *r, char *error, size_t size);

/* Measures how late threads are woken, one per --threads (on --cpus in turn), for --duration or until Ctrl-C;
 * every wake-up goes to the log as a request, so that its percentiles are exact. */
void probe_intrinsic(struct run *r);

#endif

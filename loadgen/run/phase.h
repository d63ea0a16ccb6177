/* SPDX-License-Identifier: MIT */
/* Running one of a run's tests. */
#ifndef FORKTAIL_LOADGEN_PHASE_H
#define FORKTAIL_LOADGEN_PHASE_H

#include "run_state.h"

/* Runs one test from connecting to its table, and appends its figures to r->runs. */
void run_phase(struct run *r, const struct test *test);

/* User and system time of this process so far. */
double cpu_seconds(void);

/* Takes the last counts of the threads and prints them. */
void phase_tick(struct run *r, struct phase *p);

#endif

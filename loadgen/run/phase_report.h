/* SPDX-License-Identifier: MIT */
/* What is said of a test that has ended. */
#ifndef FORKTAIL_LOADGEN_PHASE_REPORT_H
#define FORKTAIL_LOADGEN_PHASE_REPORT_H

#include "run_state.h"

/* Prints its table, checks its limits, and adds its figures to r->runs. `cpu_s`: what the program used. */
void phase_report(struct run *r, struct phase *p, double cpu_s);

#endif

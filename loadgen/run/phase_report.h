/* SPDX-License-Identifier: MIT */
/* Reports a test that has ended. */
#ifndef FORKTAIL_LOADGEN_PHASE_REPORT_H
#define FORKTAIL_LOADGEN_PHASE_REPORT_H

#include "run_state.h"

/* Prints its table, checks its limits, and appends its figures to r->runs. `cpu_s`: CPU time of the
 * program. */
void phase_report(struct run *r, struct phase *p, double cpu_s);

#endif

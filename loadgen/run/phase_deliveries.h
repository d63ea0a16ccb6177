/* SPDX-License-Identifier: MIT */
/* A test's consumers, if it has any (deliveries.h): the interface for phase.c and phase_report.c. */
#ifndef FORKTAIL_LOADGEN_PHASE_DELIVERIES_H
#define FORKTAIL_LOADGEN_PHASE_DELIVERIES_H

#include "run_state.h"

/* Connects and subscribes them before anything is sent. Negative errno, after a sentence. */
int phase_deliveries_start(struct run *r, struct phase *p);
/* All load threads have ended: waits for outstanding deliveries. */
void phase_deliveries_end(struct run *r, struct phase *p);
/* Prints a line below the table (`to` NULL: none), and errors. */
void phase_deliveries_report(struct run *r, const struct phase *p, FILE *to);
void phase_deliveries_json(const struct phase *p, const struct options *o, json_t *j);

#endif

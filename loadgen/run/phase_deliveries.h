/* SPDX-License-Identifier: MIT */
/* A test's consumers, when it has any (deliveries.h): what phase.c and phase_report.c need of them. */
#ifndef FORKTAIL_LOADGEN_PHASE_DELIVERIES_H
#define FORKTAIL_LOADGEN_PHASE_DELIVERIES_H

#include "run_state.h"

/* Connects and subscribes them, before anything is sent. Negative errno, after a sentence. */
int phase_deliveries_start(struct run *r, struct phase *p);
/* All load threads have ended: waits for what is still on its way. */
void phase_deliveries_end(struct run *r, struct phase *p);
/* A line below the table (`to` NULL: none), and what went wrong. */
void phase_deliveries_report(struct run *r, const struct phase *p, FILE *to);
void phase_deliveries_json(const struct phase *p, const struct options *o, json_t *j);

#endif

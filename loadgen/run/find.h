/* SPDX-License-Identifier: MIT */
/* --find: runs a test at one rate after the other until the highest rate is found at which the limits hold.
 */
#ifndef FORKTAIL_LOADGEN_FIND_H
#define FORKTAIL_LOADGEN_FIND_H

#include "run_state.h"

/* Checks that the workload has the operations that the limits are about. Returns 0, or negative and a
 * sentence. */
int find_check(const struct options *o, const struct workload *w, char *error, size_t size);

/* Searches, then prints the curve and the answer. */
void find_rate(struct run *r);

/* Adds "search" to the summary; nothing without a search. */
void find_json(const struct run *r, json_t *summary);

void find_free(struct run *r);

#endif

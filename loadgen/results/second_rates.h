/* SPDX-License-Identifier: MIT */
/* The throughput of each second of a run: whether a server kept its throughput, which an average hides. */
#ifndef FORKTAIL_LOADGEN_SECOND_RATES_H
#define FORKTAIL_LOADGEN_SECOND_RATES_H

#include <stdint.h>

#include "stats.h"

#ifdef __cplusplus
extern "C" {
#endif

struct second_rates {
	double *rates; /* answers per second */
	uint32_t count, room;
};

/* Adds a second's counts; the incomplete ones at a run's end are left out. Without memory, it is not added.
 */
void second_rates_add(struct second_rates *r, const struct stats *second);
void second_rates_free(struct second_rates *r);

/* The rate that at least `percent` (0 < percent <= 100) of the seconds reached: the nearest rank from above.
 * 0 without seconds. Sorts the rates. */
double second_rates_reached(struct second_rates *r, double percent);

#ifdef __cplusplus
}
#endif
#endif

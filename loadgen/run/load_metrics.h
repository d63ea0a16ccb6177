/* SPDX-License-Identifier: MIT */
/* The figures of a running load as metrics for Prometheus (--metrics): requests by operation and status,
 * histograms of latencies, and the rate that is due. A separate thread serves them over HTTP; the load
 * threads hand over their counts once per second anyway, so a scrape costs them nothing. */
#ifndef FORKTAIL_LOADGEN_RUN_LOAD_METRICS_H
#define FORKTAIL_LOADGEN_RUN_LOAD_METRICS_H

#include <stddef.h>

#include "loadgen/results.h"
#include "loadgen/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

struct load_metrics;

/* Returns 0, or -EINVAL and a sentence: `address` has not the form of an address. */
int load_metrics_check(const char *address, char *error, size_t size);
/* Listens on "ADDR:PORT", "PORT" or "/PATH" (common/metrics.h). Returns 0, or -1 and a sentence. */
int load_metrics_open(struct load_metrics **m, const char *address, char *error, size_t size);
/* Adds the counts of a second. `rate`: requests due per second; 0: a closed loop, or a rate that changes.
 * NULL for `m` is allowed. */
void load_metrics_add(struct load_metrics *m, const struct workload *w, const struct stats *second,
		      double rate);
void load_metrics_close(struct load_metrics *m);

#ifdef __cplusplus
}
#endif
#endif

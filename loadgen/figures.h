/* SPDX-License-Identifier: MIT */
/* A finished run in numbers. Percentiles are exact when the run was logged: the log is read once more and
 * the values around each wanted rank are told apart to the nanosecond (docs/forktail-load.md has the
 * limits). Without a log they come from the histogram, at most 0.1 % too high. */
#ifndef FORKTAIL_LOADGEN_FIGURES_H
#define FORKTAIL_LOADGEN_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "stats.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PERCENTILES = 6, TOTAL = OPERATIONS };
extern const double percentile_points[PERCENTILES];
extern const char *const percentile_names[PERCENTILES]; /* "p50" ... "p99.99" */

struct operation_figures {
	bool used;
	uint64_t requests, errors, bytes;
	uint64_t status[STATUSES];
	uint64_t timed; /* requests that have a latency */
	uint64_t min_ns, max_ns;
	double mean_ns, stddev_ns;
	uint64_t percentile_ns[PERCENTILES];
};

struct figures {
	struct operation_figures operations[OPERATIONS + 1]; /* the last one: TOTAL */
	double seconds;
	bool exact;
	uint64_t log_drops;
	struct error_word errors[ERROR_WORDS];
	double late_mean_ns;
	uint64_t late_max_ns, sent;
	double cpu_s;	/* of the whole program during the run */
	double busiest; /* share of the run that the busiest load thread was on a CPU */
};

/* Figures from the histograms. `cpu_s` and `busiest` are the caller's. */
void figures_from_stats(struct figures *f, const struct stats *s, double seconds);

/* Makes the percentiles exact from the log at `path`, taking entries that ended in from_ns .. to_ns. Sets
 * f->exact when log and counts agree; otherwise nothing changes. `s` is what figures_from_stats was given. */
void figures_from_log(struct figures *f, const struct stats *s, const char *path, uint64_t from_ns,
		      uint64_t to_ns);

#ifdef __cplusplus
}
#endif
#endif

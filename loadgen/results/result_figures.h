/* SPDX-License-Identifier: MIT */
/* A finished run in numbers. Percentiles are exact if the run was logged: the log is read again, and values
 * around each wanted rank are distinguished to the nanosecond (docs/reference/load.md has the limits).
 * Without a log they come from the histogram, at most 0.1 % too high. */
#ifndef FORKTAIL_LOADGEN_RESULT_FIGURES_H
#define FORKTAIL_LOADGEN_RESULT_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "stats.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PERCENTILES_MAX = 40, BUCKETS_MAX = 32, TOTAL = OPERATIONS_MAX };

/* Which percentiles, ascending, and the upper limits of buckets. */
struct wanted_figures {
	uint32_t percentile_count, bucket_count;
	double points[PERCENTILES_MAX];
	char names[PERCENTILES_MAX][24]; /* "p99.9" */
	uint64_t bucket_ns[BUCKETS_MAX]; /* ascending; one more bucket contains values above the last */
};

/* "50,99,99.9", each above 0 up to 100. */
bool percentiles_parse(const char *text, struct wanted_figures *w);
/* Adds one, unless it is present. False: the list is full. */
bool percentiles_add(struct wanted_figures *w, double point);
/* "25ms,50ms,1s", ascending; "default": 25, 50, 100, 200, 300, 400, 500 ms. */
bool buckets_parse(const char *text, struct wanted_figures *w);

struct operation_figures {
	bool used;
	uint64_t requests, errors, bytes;
	uint64_t status[STATUSES];
	uint64_t min_ns, max_ns;
	double mean_ns, stddev_ns;
	uint64_t percentile_ns[PERCENTILES_MAX];
	uint64_t buckets[BUCKETS_MAX + 1];
};

struct result_figures {
	const struct wanted_figures *wanted;
	struct operation_figures operations[OPERATIONS_MAX + 1]; /* the last one: TOTAL */
	uint32_t used;						 /* operations, without the total */
	double seconds;
	bool exact;
	uint64_t log_drops;
	uint64_t broken, connects_failed, pushes;
	struct error_word errors[ERROR_WORDS];
	struct error_times statuses[STATUSES];
	struct {
		uint64_t count; /* 0: not asked, or none is known */
		uint64_t min_ns, max_ns, unread_max_ns;
		double mean_ns, stddev_ns, unread_mean_ns;
		uint64_t percentile_ns[PERCENTILES_MAX]; /* of the histogram */
	} arrivals; /* times until answers arrived at this host, over all operations */
	struct {
		uint32_t count;		/* whole seconds; fewer than 10: not reported */
		double most, half, all; /* requests/s that 99 %, 50 % and 100 % of them reached */
	} by_second;
	double late_mean_ns;
	uint64_t late_max_ns, sent;
	double cpu_s;	/* of the whole program during the run */
	double busiest; /* share of the run in which the busiest load thread was on a CPU */
};

/* Figures from the histograms, for the `wanted` percentiles and buckets. The caller sets `cpu_s`, `busiest`
 * and `log_drops`. */
void figures_from_stats(struct result_figures *f, const struct stats *s, const struct wanted_figures *wanted,
			double seconds);

/* Makes percentiles and buckets exact from the log at `path`, using the requests in blocks at or after
 * from_offset that were due at or after from_ns (0: all). Sets f->exact if log and counts agree; otherwise
 * nothing changes. */
void figures_from_log(struct result_figures *f, const char *path, uint64_t from_offset, uint64_t from_ns);

/* Requests that got an answer of any kind: the server's throughput. */
static inline uint64_t figures_answers(const struct operation_figures *f)
{
	return status_answers(f->status);
}

static inline double figures_per_second(const struct result_figures *f, double amount)
{
	return f->seconds > 0 ? amount / f->seconds : 0;
}

#ifdef __cplusplus
}
#endif
#endif

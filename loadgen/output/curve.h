/* SPDX-License-Identifier: MIT */
/* The latency-throughput curve of --find: a row per rate that was run, as a table, CSV and JSON, and as a
 * chart drawn by the program gnuplot. */
#ifndef FORKTAIL_LOADGEN_CURVE_H
#define FORKTAIL_LOADGEN_CURVE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One run of a search. */
struct curve_run {
	double rate; /* requests due per second */
	struct test_summary figures;
	double busiest; /* share of the run in which the busiest load thread was on a CPU */
	bool held;
};

/* One rate: the median of each figure over its runs. */
struct curve_point {
	double rate;
	uint32_t runs, held;
	struct test_summary figures;
	double busiest;
};

enum { CURVE_POINTS_MAX = 96 };

struct curve {
	struct curve_point points[CURVE_POINTS_MAX]; /* by rate, ascending */
	uint32_t count;
	double highest; /* the rate that the search found; 0: none */
};

/* Combines runs of the same rate; those of more than CURVE_POINTS_MAX rates are left out. */
void curve_make(struct curve *c, const struct curve_run *runs, uint32_t count, double highest);

void curve_table(FILE *to, const struct curve *c);
void curve_csv(FILE *to, const struct curve *c);
void curve_json(json_t *array, const struct curve *c);

/* True if gnuplot can be started. */
bool curve_can_draw(void);
/* Draws `path` as SVG. False: gnuplot failed or could not write it. */
bool curve_svg(const char *path, const struct curve *c, const char *title);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* Output for the user: the progress line, the final table, the figures as JSON and CSV. */
#ifndef FORKTAIL_LOADGEN_REPORT_H
#define FORKTAIL_LOADGEN_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "loadgen/options/options.h"
#include "loadgen/results/result_figures.h"
#include "loadgen/workload/workload.h"
#include "recording/json/json_block.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a run ended; anything except RUN_DONE is printed. */
enum run_end { RUN_DONE, RUN_INTERRUPTED, RUN_SERVER_LOST, RUN_ERRORS };
extern const char *const run_end_names[]; /* "done", "interrupted", "server lost", "errors" */

/* Prints the progress line for one second's counts, if there are any. eta_s < 0: unknown. `tty`: the line
 * overwrites the previous one. */
void report_progress(FILE *to, bool tty, const char *name, double elapsed_s, const struct stats *second,
		     uint64_t errors, double eta_s);

/* "SET+GET 1:10, 50 connections, closed loop ..." */
void report_headline(char *out, size_t size, const struct options *o, const char *name);

/* start_ns: origin of the times of errors. */
void report_table(FILE *to, const struct result_figures *f, const struct workload *w, const char *headline,
		  uint64_t start_ns);
/* Latencies and the share of requests up to each, halving the remainder, as redis-benchmark prints them. */
void report_distribution(FILE *to, const struct stats *s);

/* redis-benchmark's CSV: its header, and a test's row. */
void report_csv_header(FILE *to);
void report_csv_row(FILE *to, const char *name, const struct result_figures *f);

/* The same figures as members of an open object. */
void report_json(json_t *j, const struct result_figures *f, const struct workload *w);

/* What is kept of a test's figures after several tests. */
struct test_summary {
	char name[32];
	double rps, mean_ns, p50_ns, p99_ns, p999_ns, max_ns;
	uint64_t requests, errors;
};
void report_summarize(struct test_summary *s, const char *name, const struct result_figures *f);
/* A row per test. */
void report_suite(FILE *to, const struct test_summary *all, size_t count);
/* A test run `count` times: best, worst, mean and spread (standard deviation) of its figures. */
void report_repeats(FILE *to, const struct test_summary *all, size_t count);
void report_repeats_json(json_t *j, const struct test_summary *all, size_t count);

#ifdef __cplusplus
}
#endif
#endif

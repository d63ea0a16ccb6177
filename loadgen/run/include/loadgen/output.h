/* SPDX-License-Identifier: MIT */
/* Output for the user: the progress line, the final table, the figures as JSON and CSV. */
#ifndef FORKTAIL_LOADGEN_OUTPUT_H
#define FORKTAIL_LOADGEN_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "loadgen/cluster.h"
#include "loadgen/options.h"
#include "loadgen/results.h"
#include "loadgen/workload.h"
#include "recording/hdr_log.h"
#include "recording/json_block.h"
#include "recording/recording.h"

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

/* The latency-throughput curve of --find: a row per rate that was run, as a table, CSV and JSON, and as a
 * chart drawn by the program gnuplot. */

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

struct nodes;

/* Additions to a test's table and JSON for several servers: figures by server, redirects, and outages with
 * their gaps. */

/* start_ns: origin of times. seconds: duration for rates. */
void node_report(FILE *to, const struct nodes *n, const struct stats *s, const struct outages *o,
		 uint64_t start_ns, double seconds);
/* As members of an open object: "nodes", "redirects", "outages". */
void node_report_json(json_t *j, const struct nodes *n, const struct stats *s, const struct outages *o);
/* Each outage as a note of kind "outage". */
void node_report_notes(struct ft_writer *w, const struct nodes *n, const struct outages *o);

/* The figures of each second as statsd lines over UDP: counters of requests and errors, gauges of latencies.
 */

struct statsd {
	int fd; /* -1: closed */
	const char *prefix;
};

/* Opens a socket to a host (name or address); `prefix` must outlive it. Returns 0, or -1 and a sentence. */
int statsd_open(struct statsd *s, const char *host, uint32_t port, const char *prefix, char *error,
		size_t size);
void statsd_close(struct statsd *s);
/* Sends the counts of a second: PREFIX.requests and .errors, .p50, .p99, .p99_9 and .max (ms) over all
 * operations, and the same as PREFIX.OPERATION.requests ... if there are several. Datagrams that cannot be
 * sent are lost, as statsd expects. */
void statsd_send(const struct statsd *s, const struct workload *w, const struct stats *second);

/* What is written once per second during the load: the series of figures as CSV, HdrHistogram's interval log,
 * and statsd's lines. */

struct second_outputs {
	FILE *series;
	struct hdr_log *hlog;
	struct statsd statsd;
	uint64_t start_ns; /* origin of times in both */
};

/* Creates the files that the options name. Returns 0, or -1 and a sentence. */
int second_outputs_open(struct second_outputs *out, const struct options *o, char *error, size_t size);
/* The counts from from_ns to to_ns of a test. */
void second_outputs_write(struct second_outputs *out, const char *test, const struct workload *w,
			  const struct stats *second, uint64_t from_ns, uint64_t to_ns);
/* Returns 0, or -1 and a sentence if a file could not be written. */
int second_outputs_close(struct second_outputs *out, const struct options *o, char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* The state shared by all files of a run: what its tests have in common, and the current test. */
#ifndef FORKTAIL_LOADGEN_RUN_RUN_STATE_H
#define FORKTAIL_LOADGEN_RUN_RUN_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "load_metrics.h"
#include "loadgen/deliveries.h"
#include "loadgen/engine.h"
#include "loadgen/nodes.h"
#include "loadgen/options.h"
#include "loadgen/output.h"
#include "loadgen/results.h"
#include "loadgen/server.h"
#include "recording/json_block.h"
#include "search.h"
#include "suite.h"

struct find;

struct run {
	const struct options *o;
	struct server server;
	struct nodes *nodes;	  /* NULL: one server */
	struct ketama proxy_ring; /* the ring of servers behind a proxy; empty: none */
	struct workload *workload;
	struct suite suite;
	struct request_log *log;
	struct second_outputs outputs;
	FILE *csv;	 /* NULL: tables */
	bool log_failed; /* the failure was reported */
	int signal_fd;
	uint32_t next_connection;
	bool awaited;	    /* --start-at */
	bool progress_open; /* an unfinished progress line is on the terminal */
	enum run_end end;
	size_t failed_tests; /* tests of which every request failed; all tests: exit status 3 */
	bool moved;	     /* a node of a cluster was asked without --cluster: exit status 3 */
	int status;
	json_t *runs; /* an array: the figures of each test */
	struct test_summary *summaries;
	size_t summary_count;
	double rate; /* of the current test: requests per second; 0: closed loop or a profile */
	struct load_metrics *metrics; /* NULL: none */
	struct find *find;	      /* the search of --find; NULL: none */
};

/* A test: its requests, threads and counts. */
struct phase {
	const char *name;
	struct load_plan plan;
	struct load_thread *threads;
	uint32_t thread_count, started;
	struct stats *totals, *second; /* total so far; the last second that was handed over */
	uint64_t second_ns;	       /* when that second began */
	struct second_rates rates;     /* of whole seconds after the warm-up */
	struct deliveries *deliveries; /* consumers; NULL: none */
	struct delivery_counts delivery_counts;
	uint64_t log_offset; /* offset in the log where this test's requests begin */
};

/* Error messages of a run on stderr. */

/* Prints one sentence on stderr, below the progress line, and sets the run's exit status. */
void complain(struct run *r, const char *text);
/* The same for a run that exceeded a limit (exit status 1, unless a more severe error was reported). */
void complain_of_limit(struct run *r, const char *text);
/* Ends the progress line, if one is on the terminal. */
void end_progress(struct run *r);

/* Running one of a run's tests. */

/* Runs one test from connecting to its table, and appends its figures to r->runs. */
void run_phase(struct run *r, const struct test *test);

/* User and system time of this process so far. */
double cpu_seconds(void);

/* Takes the last counts of the threads and prints them. */
void phase_tick(struct run *r, struct phase *p);

/* A test's consumers, if it has any (deliveries.h): for phase.c. */

/* Connects and subscribes them before anything is sent. Negative errno, after a sentence. */
int phase_deliveries_start(struct run *r, struct phase *p);
/* All load threads have ended: waits for outstanding deliveries. */
void phase_deliveries_end(struct run *r, struct phase *p);
/* Prints a line below the table (`to` NULL: none), and errors. */
void phase_deliveries_report(struct run *r, const struct phase *p, FILE *to);
void phase_deliveries_json(const struct phase *p, const struct options *o, json_t *j);

/* Reports a test that has ended. */

/* Prints its table, checks its limits, and appends its figures to r->runs. `cpu_s`: CPU time of the
 * program. */
void phase_report(struct run *r, struct phase *p, double cpu_s);

/* One run of a search: whether its rate held. */

struct find {
	struct search search;
	struct curve_run runs[SEARCH_RUNS_MAX + 8];
	uint32_t count;
	struct curve curve;  /* of all runs, when the search has ended */
	bool outside;	     /* the current run completes the curve only */
	double failed_below; /* a rate below the highest of which runs failed then; 0: none */
	bool told;	     /* the current run has ended with figures */
	double closed_rps;   /* of the first run */
	uint64_t begin_ns[SEARCH_RATES_MAX], end_ns[SEARCH_RATES_MAX]; /* of each rate's last run */
};

/* Takes the figures of a run of the search, and adds "rate" and "held" to the run's JSON. */
void find_take(struct run *r, const struct phase *p, const struct result_figures *f, json_t *figures);
#endif

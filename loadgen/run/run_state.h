/* SPDX-License-Identifier: MIT */
/* The state shared by all files of a run: what its tests have in common, and the current test. */
#ifndef FORKTAIL_LOADGEN_RUN_STATE_H
#define FORKTAIL_LOADGEN_RUN_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/cluster/nodes.h"
#include "loadgen/deliveries/deliveries.h"
#include "loadgen/engine/load_thread.h"
#include "loadgen/metrics/load_metrics.h"
#include "loadgen/options/options.h"
#include "loadgen/output/report.h"
#include "loadgen/output/second_outputs.h"
#include "loadgen/results/log.h"
#include "loadgen/results/second_rates.h"
#include "loadgen/server/connect.h"
#include "recording/json/json_block.h"
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

#endif

/* SPDX-License-Identifier: MIT */
/* What all files of a run share: what its tests have in common, and what is known of the one that runs. */
#ifndef FORKTAIL_LOADGEN_RUN_STATE_H
#define FORKTAIL_LOADGEN_RUN_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/cluster/nodes.h"
#include "loadgen/deliveries/deliveries.h"
#include "loadgen/engine/load_thread.h"
#include "loadgen/options/options.h"
#include "loadgen/output/report.h"
#include "loadgen/output/second_outputs.h"
#include "loadgen/results/log.h"
#include "loadgen/server/connect.h"
#include "recording/json/json_block.h"
#include "suite.h"

struct run {
	const struct options *o;
	struct server server;
	struct nodes *nodes;	  /* NULL: there is one server */
	struct ketama proxy_ring; /* the ring of servers behind a proxy; empty: there are none */
	struct workload *workload;
	struct suite suite;
	struct request_log *log;
	struct second_outputs outputs;
	FILE *csv;	 /* NULL: tables */
	bool log_failed; /* and it was said */
	int signal_fd;
	uint32_t next_connection;
	bool awaited;	    /* --start-at */
	bool progress_open; /* a progress line without its end stands on the terminal */
	enum run_end end;
	int status;
	json_t *runs; /* an array: the figures of each test */
	struct test_summary *summaries;
	size_t summary_count;
};

/* A test: what is sent, by which threads, and what they counted. */
struct phase {
	const char *name;
	struct load_plan plan;
	struct load_thread *threads;
	uint32_t thread_count, started;
	struct stats *totals, *second; /* all so far; the second that was handed over last */
	uint64_t second_ns;	       /* when that began */
	struct deliveries *deliveries; /* consumers; NULL: none */
	struct delivery_counts delivery_counts;
	uint64_t log_offset; /* where in the log this test's requests begin */
};

#endif

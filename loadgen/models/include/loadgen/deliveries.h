/* SPDX-License-Identifier: MIT */
/* The receiving side of publishing: consumers that receive what the load sends, and when. A message's latency
 * counts from when its publish was due to when a consumer's read() returned it, through the server and its
 * output buffers. The answer to PUBLISH does not show this. Consumers have a separate thread and event loop,
 * so that load threads don't delay deliveries, nor deliveries the load. Each delivery is counted and logged
 * as a request, with the publish's intended and start times. */
#ifndef FORKTAIL_LOADGEN_DELIVERIES_H
#define FORKTAIL_LOADGEN_DELIVERIES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loadgen/net.h"
#include "loadgen/options.h"
#include "loadgen/results.h"
#include "loadgen/stamp.h"
#include "loadgen/workload.h"

struct deliveries;

struct deliveries_plan {
	const struct options *options;
	const struct workload *workload;
	uint32_t first_id; /* of the consumers' connections */
	struct mix mix;	   /* contains the delivery's operation */
	struct endpoint endpoint;
	atomic_bool *stop, *gave_up; /* of the load: ended by --on-error stop */
	int done_fd;
	struct request_log *log; /* NULL: no log */
	uint64_t log_over_ns;
};

/* The result after everything has ended. */
struct delivery_counts {
	uint64_t expected;   /* acknowledged publishes times the number of receivers of each */
	uint64_t received;   /* deliveries without duplicates and without warm-up, as in `expected` */
	uint64_t duplicates; /* to a consumer (pub/sub, streams) or to any (lists, groups) */
	uint64_t foreign;    /* unrelated messages on our channels and queues */
	uint64_t log_drops;  /* deliveries that are missing in the log */
	uint64_t broken;     /* consumers' connections */
	const char *why;     /* why the last one broke; NULL: none */
};

/* Takes ownership of `fds`, which are connected and set up, subscribes, and returns when all consumers are
 * ready. Negative errno, and a sentence. */
int deliveries_start(struct deliveries **out, const struct deliveries_plan *plan, const int *fds, char *error,
		     size_t size);
/* Counts deliveries of publishes due from here on. */
void deliveries_measure(struct deliveries *d, uint64_t measure_ns);
/* Adds what was counted since the last call. */
void deliveries_take(struct deliveries *d, struct stats *into);
/* Waits until `acknowledged` publishes have arrived everywhere, for at most drain_ns or until *abandon. Ends
 * the thread. deliveries_take then returns the rest. */
void deliveries_end(struct deliveries *d, uint64_t acknowledged, uint64_t drain_ns,
		    const atomic_bool *abandon, struct delivery_counts *how);
void deliveries_free(struct deliveries *d);
#endif

/* SPDX-License-Identifier: MIT */
/* The other end of publishing: consumers that receive what the load sends, and when. A message's latency
 * counts from when its publish was due to when a consumer's read() returned it, through the server and its
 * output buffers: what PUBLISH's own answer says nothing of.
 *
 * Consumers live in a thread of their own, so that load threads' work doesn't make deliveries late (nor
 * theirs the load), with a loop of its own. Each delivery is counted and logged as a request like any other,
 * with the publish's intended and start times.
 */
#ifndef FORKTAIL_LOADGEN_DELIVERIES_H
#define FORKTAIL_LOADGEN_DELIVERIES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loadgen/command/stamp.h"
#include "loadgen/net/socket.h"
#include "loadgen/options/delivery_kind.h"
#include "loadgen/options/on_error.h"
#include "loadgen/results/log.h"
#include "loadgen/results/stats.h"
#include "loadgen/workload/workload.h"

struct deliveries;

struct deliveries_plan {
	enum delivery_kind kind;
	uint32_t consumers;
	uint32_t channels;   /* or queues: key names number 0 to that */
	uint8_t operation;   /* of a delivery */
	uint32_t first_id;   /* of the consumers' connections */
	uint32_t thread;     /* number, for connection records */
	uint32_t backoff_ms; /* before a consumer that broke is opened again */
	enum on_error on_error;
	const struct workload *workload;
	struct mix mix; /* with the delivery's operation in it */
	struct endpoint endpoint;
	struct stamps *stamps;
	atomic_bool *stop, *gave_up; /* of the load: --on-error stop ends it */
	int done_fd;
	struct request_log *log; /* NULL: none is kept */
	uint64_t log_over_ns;
};

/* How it went, once all has ended. */
struct delivery_counts {
	uint64_t expected;   /* acknowledged publishes times those who get each */
	uint64_t received;   /* deliveries, without duplicates; warm-up left out, as in `expected` */
	uint64_t duplicates; /* of a consumer (pub/sub, streams) or of any (lists, groups) */
	uint64_t foreign;    /* other messages on our channels and queues */
	uint64_t log_drops;  /* deliveries that are missing in the log */
	uint64_t broken;     /* consumers' connections */
	const char *why;     /* the last one broke; NULL: none */
};

/* Takes over `fds`, connected and set up, subscribes, and returns when all consumers are ready. Negative
 * errno, and a sentence. */
int deliveries_start(struct deliveries **out, const struct deliveries_plan *plan, const int *fds, char *error,
		     size_t size);
/* Deliveries of publishes due from here on are counted. */
void deliveries_measure(struct deliveries *d, uint64_t measure_ns);
/* Adds what was counted since the last call. */
void deliveries_take(struct deliveries *d, struct stats *into);
/* Waits until `acknowledged` publishes have arrived everywhere, for drain_ns at most or until *abandon; ends
 * the thread. deliveries_take has the rest then. */
void deliveries_end(struct deliveries *d, uint64_t acknowledged, uint64_t drain_ns,
		    const atomic_bool *abandon, struct delivery_counts *how);
void deliveries_free(struct deliveries *d);

#endif

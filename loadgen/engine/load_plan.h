/* SPDX-License-Identifier: MIT */
/* The task of all load threads of a test. Read-only while they run, except for what threads and the main
 * thread tell each other about the end. */
#ifndef FORKTAIL_LOADGEN_LOAD_PLAN_H
#define FORKTAIL_LOADGEN_LOAD_PLAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loadgen/net/socket.h"
#include "loadgen/options/on_error.h"
#include "loadgen/workload/workload.h"

/* How a test ends early. */
struct ending {
	uint64_t max_errors; /* 0: no limit */
	atomic_uint_fast64_t errors;
	atomic_bool stop;    /* send nothing more, await answers for at most a second */
	atomic_bool abandon; /* await nothing more */
	atomic_bool gave_up; /* an error ended the run */
	int done_fd;	     /* eventfd: a thread has ended, or `stop` was set */
};

struct load_plan {
	const struct workload *workload;
	struct mix mix;
	uint64_t start_ns, end_ns;		 /* end_ns: PACING_NEVER without a duration */
	uint64_t measure_ns;			 /* requests due before it are warm-up: logged, not counted */
	uint64_t log_over_ns;			 /* faster requests are not logged, unless they failed */
	uint64_t drain_ns, think_ns, timeout_ns; /* 0: none */
	uint64_t seed;
	uint32_t pipeline, batch;
	uint32_t reconnect_after; /* requests per connection; 0: no limit */
	uint32_t connections;	  /* over all threads */
	const struct profile *connections_over_time;
	bool open_loop, blocking, no_wait; /* `nodes` and a replay also determine the threads' load_model */
	bool resp3;			   /* the server may push */
	bool stamped;	    /* the message contains when its request was due, in a closed loop too */
	bool arrival_times; /* the kernel is asked when answers arrived, over TCP */
	bool busy_poll;	    /* threads never sleep */
	bool replay_loop;   /* a replay starts again after its end */
	uint32_t first_id;  /* of the test's first connection */
	uint32_t database;  /* the database of a newly opened connection */
	enum on_error on_error;
	uint32_t backoff_ms;
	struct endpoint endpoint;	 /* of the server, if there is only one */
	struct nodes *nodes;		 /* NULL: there is one server */
	const struct ketama *proxy_ring; /* finds each request's server for the log; NULL: no proxy */
	uint64_t retry_ns; /* how long a request is retried after a server refused or redirected it */
	atomic_uint next_connection; /* numbers for connections opened during the run */
	struct ending ending;
};

/* Slots for requests on one connection: a redirected request takes an ASKING with it, so two slots instead of
 * one for a single server. */
static inline uint32_t plan_ring_size(const struct load_plan *plan)
{
	return plan->nodes ? 2 * plan->pipeline : plan->pipeline;
}

#endif

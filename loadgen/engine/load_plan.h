/* SPDX-License-Identifier: MIT */
/* What all load threads of a test are to do; read-only while they run, but for what they tell each other and
 * the main thread about ending it. */
#ifndef FORKTAIL_LOADGEN_LOAD_PLAN_H
#define FORKTAIL_LOADGEN_LOAD_PLAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loadgen/net/socket.h"
#include "loadgen/options/on_error.h"
#include "loadgen/workload/workload.h"

/* How a test comes to its end before it is through. */
struct ending {
	uint64_t max_errors; /* 0: no limit */
	atomic_uint_fast64_t errors;
	atomic_bool stop;    /* send nothing more, await answers for a second at most */
	atomic_bool abandon; /* await nothing more */
	atomic_bool gave_up; /* an error ended the run */
	int done_fd;	     /* eventfd: a thread has ended, or `stop` was set */
};

struct load_plan {
	const struct workload *workload;
	struct mix mix;
	uint64_t start_ns, end_ns; /* end_ns: PACING_NEVER without a duration */
	uint64_t measure_ns;	   /* requests due before it are warm-up: logged, not counted */
	uint64_t log_over_ns;	   /* quicker requests stay out of the log, unless they failed */
	uint64_t drain_ns, think_ns, timeout_ns; /* 0: none */
	uint64_t seed;
	uint32_t pipeline, batch;
	uint32_t reconnect_after; /* requests on a connection; 0: it stays */
	uint32_t connections;	  /* over all threads */
	const struct profile *connections_over_time;
	bool open_loop, blocking, no_wait; /* with `nodes` and a replay they choose the threads' load_model */
	bool resp3;			   /* the server may push */
	bool stamped;			   /* a request says when it was due, in a closed loop too */
	bool arrival_times;		   /* the kernel is asked when answers arrived, over TCP */
	bool busy_poll;			   /* threads never sleep */
	bool replay_loop;		   /* a replay begins again when it is through */
	uint32_t first_id;		   /* of the test's first connection */
	uint32_t database;		   /* that a connection is in when it was opened */
	enum on_error on_error;
	uint32_t backoff_ms;
	struct endpoint endpoint;	 /* of the one server, when there is one */
	struct nodes *nodes;		 /* NULL: there is one */
	const struct ketama *proxy_ring; /* what the log says of each request (proxy_ring.h); NULL: nothing */
	uint64_t retry_ns;		 /* how long a request is sent again when a server sent it away */
	atomic_uint next_connection;	 /* numbers for connections opened while it runs */
	struct ending ending;
};

/* Places for requests on one connection: a redirected one takes an ASKING with it, so two places where a
 * single server needs one. */
static inline uint32_t plan_ring_size(const struct load_plan *plan)
{
	return plan->nodes ? 2 * plan->pipeline : plan->pipeline;
}

#endif

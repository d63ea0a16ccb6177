/* SPDX-License-Identifier: MIT */
/* The end of a request: its counters and its log entry. */
#ifndef FORKTAIL_LOADGEN_REQUEST_END_H
#define FORKTAIL_LOADGEN_REQUEST_END_H

#include "load_thread.h"
#include "recording/recording.h"

/* Requests without an error that differ in nothing that is recorded, as those of a pipelined batch often do.
 */
struct equal_requests {
	struct ft_request request;
	uint64_t bytes; /* of all of them, sent and received */
	uint32_t count;
};

/* Requests of the load ended: counts them and logs them. */
void record_equal(struct load_thread *t, struct equal_requests *e);

/* The log entry of a request that ended. */
static inline struct ft_request ended_request(uint32_t connection, const struct pending_request *p,
					      uint64_t end_ns, unsigned status)
{
	return (struct ft_request){
	    .intended_ns = p->intended_ns,
	    .start_ns = p->start_ns,
	    .end_ns = end_ns,
	    .connection = connection,
	    .op = p->operation,
	    .status = (uint8_t)status,
	};
}

/* A request of the load ended: counts it and logs it. */
void record_request(struct load_thread *t, uint32_t connection, const struct pending_request *p,
		    uint64_t end_ns, unsigned status, uint64_t bytes);

/* Any request ended. For a command of the generator itself (a replay's SELECT) nothing is logged. */
static inline void record_end(struct load_thread *t, uint32_t connection, const struct pending_request *p,
			      uint64_t end_ns, unsigned status, uint64_t bytes)
{
	if (!t->plan->workload->operations[p->operation].internal)
		record_request(t, connection, p, end_ns, status, bytes);
}

/* Bytes besides those of finished requests. Those of warm-up don't count. */
static inline void count_bytes(struct load_thread *t, unsigned operation, uint64_t bytes)
{
	struct operation_stats *s = t->stats->operations[operation];

	if (t->counting && s) /* a SELECT of the generator itself (replay) is not counted */
		s->bytes += bytes;
}

#endif

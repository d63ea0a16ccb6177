/* SPDX-License-Identifier: MIT */
/* The end of a request: what is counted of it, and what the log has of it. */
#ifndef FORKTAIL_LOADGEN_REQUEST_END_H
#define FORKTAIL_LOADGEN_REQUEST_END_H

#include "load_thread.h"

/* A request of the load ended: counts it and logs it. */
void record_request(struct load_thread *t, uint32_t connection, const struct pending_request *p,
		    uint64_t end_ns, unsigned status, uint64_t bytes);

/* Any ended; of a command of our own (a replay's SELECT) nothing is said. */
static inline void record_end(struct load_thread *t, uint32_t connection, const struct pending_request *p,
			      uint64_t end_ns, unsigned status, uint64_t bytes)
{
	if (!t->plan->workload->operations[p->operation].internal)
		record_request(t, connection, p, end_ns, status, bytes);
}

/* Bytes that no finished request brings with it; warm-up's don't count. */
static inline void count_bytes(struct load_thread *t, unsigned operation, uint64_t bytes)
{
	struct operation_stats *s = t->stats->operations[operation];

	if (t->counting && s) /* a SELECT of our own (replay) is nobody's */
		s->bytes += bytes;
}

#endif

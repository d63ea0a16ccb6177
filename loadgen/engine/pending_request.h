/* SPDX-License-Identifier: MIT */
/* A request on its way, and the instants that it is judged by.
 *
 * Where nothing but the answers before it made a request due (a closed loop), it is due when it is sent, and
 * that is known only then: intended_ns is 0 until it's resolved, here and nowhere else. */
#ifndef FORKTAIL_LOADGEN_PENDING_REQUEST_H
#define FORKTAIL_LOADGEN_PENDING_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

/* A key's number is below KEY_SPACE_MAX. */
struct pending_request {
	uint64_t intended_ns; /* 0: when it is sent */
	uint64_t start_ns;    /* 0: never handed to the kernel yet */
	uint64_t key : 40;
	uint64_t
	    tries : 8; /* not 0: it was sent elsewhere, so often since it was last put off (routed_loops.c) */
	uint64_t operation : 8; /* NO_OPERATION: an ASKING before the request behind it */
	uint64_t step : 7;
	uint64_t ends_batch : 1; /* meta_answer.c */
};

/* Waiting begins now for what was not due yet. Returns whether that is so. */
static inline bool pending_set_due(struct pending_request *p, uint64_t now_ns)
{
	if (p->intended_ns)
		return false;
	p->intended_ns = now_ns;
	return true;
}

/* It is handed to the kernel now, or would be: a request that ends before it was counts as sent when it ends.
 * What was sent before (a further step, another server) keeps its instants. Returns whether it was sent later
 * than it was due, so that this counts. */
static inline bool pending_set_sent(struct pending_request *p, uint64_t now_ns)
{
	if (__builtin_expect(p->start_ns != 0, 0))
		return false;
	p->start_ns = now_ns;
	return !pending_set_due(p, now_ns);
}

#endif

/* SPDX-License-Identifier: MIT */
/* An outstanding request and the instants by which it is measured. In a closed loop a request is due when it
 * is sent, which is known only then: until then intended_ns is 0. It is resolved only here. */
#ifndef FORKTAIL_LOADGEN_PENDING_QUEUE_H
#define FORKTAIL_LOADGEN_PENDING_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A key's number is below KEY_SPACE_MAX. */
struct pending_request {
	uint64_t intended_ns; /* 0: when it is sent */
	uint64_t start_ns;    /* 0: never passed to the kernel yet */
	uint64_t key : 40;
	uint64_t tries : 8; /* how often it was redirected since it was last postponed (routed_requests.c) */
	uint64_t operation : 8; /* NO_OPERATION: an ASKING before the request after it */
	uint64_t step : 7;
	uint64_t ends_batch : 1; /* answers.c */
};

/* A request without a due time becomes due now. Returns whether that applied. */
static inline bool pending_set_due(struct pending_request *p, uint64_t now_ns)
{
	if (p->intended_ns)
		return false;
	p->intended_ns = now_ns;
	return true;
}

/* It is passed to the kernel now; a request that ends before that counts as sent when it ends. A request that
 * was already sent (a further step, another server) keeps its instants. Returns whether it was sent later
 * than it was due. */
static inline bool pending_set_sent(struct pending_request *p, uint64_t now_ns)
{
	if (__builtin_expect(p->start_ns != 0, 0))
		return false;
	p->start_ns = now_ns;
	return !pending_set_due(p, now_ns);
}

/* Requests in order, without a connection: they wait for a connection with space, or for a server with their
 * keys (routed_requests.c). The ring grows, because the number of requests that fall due while a server is
 * away is unknown. */

/* All zeros: empty. `ring` must be freed. */
struct pending_queue {
	struct pending_request *ring;
	uint32_t first, count, room;
};

void pending_queue_push(struct pending_queue *w, const struct pending_request *p);
/* Removes the first one. False: empty. */
bool pending_queue_pop(struct pending_queue *w, struct pending_request *p);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* Requests in order, without a connection: they wait for a connection with space, or for a server with their
 * keys (routed_requests.c). The ring grows, because the number of requests that fall due while a server is
 * away is unknown. */
#ifndef FORKTAIL_LOADGEN_PENDING_QUEUE_H
#define FORKTAIL_LOADGEN_PENDING_QUEUE_H

#include "pending_request.h"

#ifdef __cplusplus
extern "C" {
#endif

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

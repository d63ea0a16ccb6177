/* SPDX-License-Identifier: MIT */
/* Requests in order, without a connection: they wait for one with room, or for a server that has their keys
 * (routed_loops.c). A ring that grows, since nobody knows how much falls due while a server is away. */
#ifndef FORKTAIL_LOADGEN_PENDING_QUEUE_H
#define FORKTAIL_LOADGEN_PENDING_QUEUE_H

#include "pending_request.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All zeros: empty. `ring` is to be freed. */
struct pending_queue {
	struct pending_request *ring;
	uint32_t first, count, room;
};

void pending_queue_push(struct pending_queue *w, const struct pending_request *p);
/* Takes out the first. False: there is none. */
bool pending_queue_pop(struct pending_queue *w, struct pending_request *p);

#ifdef __cplusplus
}
#endif
#endif

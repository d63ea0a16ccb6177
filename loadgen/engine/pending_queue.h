/* SPDX-License-Identifier: MIT */
/* Requests in order, without a connection: they wait for one with room, or for a server that has their keys
 * (routed_loops.c). A ring that grows, since nobody knows how much falls due while a server is away. */
#ifndef FORKTAIL_LOADGEN_WAITING_H
#define FORKTAIL_LOADGEN_WAITING_H

#include "pending_request.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All zeros: empty. `ring` is to be freed. */
struct waiting {
	struct pending *ring;
	uint32_t first, count, room;
};

void waiting_push(struct waiting *w, const struct pending *p);
/* Takes out the first. False: there is none. */
bool waiting_pop(struct waiting *w, struct pending *p);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* A thread's connections to one server, created and freed together. */
#ifndef FORKTAIL_LOADGEN_GROUP_H
#define FORKTAIL_LOADGEN_GROUP_H

#include "loadgen/engine/load_thread.h"

/* Adds a group of connections to `endpoint`, the endpoint of `node` if there are several. fds[i] is
 * connection first_id + i, connected, set up and non-blocking. With NULL all are opened now, in the
 * background. Takes ownership of the descriptors in any case. NULL: out of memory. */
struct group *group_connect(struct load_thread *t, const struct endpoint *endpoint, uint16_t node,
			    const int *fds, uint32_t first_id);
void group_free(struct group *g);

#endif

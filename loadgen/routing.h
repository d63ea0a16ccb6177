/* SPDX-License-Identifier: MIT */
/* What others need to know of a load thread's routing (routed.c). */
#ifndef FORKTAIL_LOADGEN_ROUTING_H
#define FORKTAIL_LOADGEN_ROUTING_H

#include "outages.h"
#include "thread.h"

/* Requests to the group's node go to the group from now on. */
void routing_add(struct load_thread *t, struct group *g);
/* What the thread saw of outages. */
const struct outages *routing_outages(const struct load_thread *t);

#endif

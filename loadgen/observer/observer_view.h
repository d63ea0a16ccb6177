/* SPDX-License-Identifier: MIT */
/* What a kind of server is asked, and what is made of its answers. A view lives as long as the observer, over
 * all of its connections to the server. */
#ifndef FORKTAIL_LOADGEN_OBSERVER_VIEW_H
#define FORKTAIL_LOADGEN_OBSERVER_VIEW_H

#include "loadgen/server/connect.h"
#include "observer_series.h"

/* Rounds of questions that took longer are noted: the observer waits in the server's queue as clients do. */
#define OBSERVER_SLOW_NS 100000000u

struct observer_view {
	/* NULL when memory is short. */
	void *(*create)(struct observer_series *to);
	/* A link to the server, ready for questions; NULL: s->refused and s->why say why not. */
	struct link *(*enter)(void *view, struct server *s);
	/* One round of questions. 0 or a negative errno; -EACCES: the server does not tell, now or ever. */
	int (*round)(void *view, struct link *l);
	void (*free)(void *view);
};

extern const struct observer_view redis_view, memcached_view;

#endif

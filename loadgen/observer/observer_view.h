/* SPDX-License-Identifier: MIT */
/* The questions to a kind of server and the handling of its answers. A view lives as long as the observer,
 * over all of its connections to the server. */
#ifndef FORKTAIL_LOADGEN_OBSERVER_VIEW_H
#define FORKTAIL_LOADGEN_OBSERVER_VIEW_H

#include "loadgen/server/connect.h"
#include "observer_series.h"

/* Rounds that took longer are noted: the observer waits in the server's queue like clients do. */
#define OBSERVER_SLOW_NS 100000000u
/* Often enough to see clients that are blocked for 50 ms. */
#define OBSERVER_LOOK_NS 50000000u

struct observer_view {
	/* NULL: out of memory. */
	void *(*create)(struct observer_series *to);
	/* A link to the server, ready for questions. NULL: s->refused and s->why say why. */
	struct link *(*enter)(void *view, struct server *s);
	/* One round of questions. Returns 0 or a negative errno. -EACCES: the server will never answer
	 * them. */
	int (*round)(void *view, struct link *l);
	/* A cheap question between two rounds, OBSERVER_LOOK_NS apart, if the view has one, else NULL.
	 * Returns as round. */
	int (*look)(void *view, struct link *l);
	/* The questions at the end, if the view has some, else NULL. */
	void (*last)(void *view, struct link *l);
	void (*free)(void *view);
};

extern const struct observer_view redis_view, memcached_view;

#endif

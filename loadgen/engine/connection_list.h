/* SPDX-License-Identifier: MIT */
/* Lists of a group's connections with space for a request: idle ones, and others. A request that can choose
 * its connection (open loop, several servers) takes one of these. */
#ifndef FORKTAIL_LOADGEN_CONNECTION_LIST_H
#define FORKTAIL_LOADGEN_CONNECTION_LIST_H

#include "load_thread.h"

/* Whether the connection may send as soon as its pipeline has space. */
static inline bool can_send(const struct connection *c)
{
	const struct load_plan *plan = c->thread->plan;

	return c->fd >= 0 && !c->backlog && !c->connecting && !c->parked &&
	       (!plan->reconnect_after || c->taken < plan->reconnect_after);
}

/* The connection of a group that has been idle longest, otherwise one with space, otherwise NULL. */
static inline struct connection *connection_list_first(const struct group *g)
{
	struct connection *c = TAILQ_FIRST(&g->idle);

	return c ? c : TAILQ_FIRST(&g->partial);
}

/* Appends a connection, which is on no list, to a list. */
static inline void connection_list_add(struct connection *c, struct connection_list *list)
{
	TAILQ_INSERT_TAIL(list, c, list_entry);
	c->list = list;
}

/* Removes it from its list, if any. */
static inline void connection_list_remove(struct connection *c)
{
	if (c->list)
		TAILQ_REMOVE(c->list, c, list_entry);
	c->list = NULL;
}

/* Moves the connection to the list that fits its state. */
void connection_list_update(struct connection *c);

#endif

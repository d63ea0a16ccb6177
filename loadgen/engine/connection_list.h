/* SPDX-License-Identifier: MIT */
/* Which connections of a group have room for a request, those that are idle apart from those that are not.
 * Where a request can choose its connection (open loop, several servers), it takes one of these. */
#ifndef FORKTAIL_LOADGEN_CONNECTION_LIST_H
#define FORKTAIL_LOADGEN_CONNECTION_LIST_H

#include "load_thread.h"

/* Whether the connection may send as soon as there is room in its pipeline. */
static inline bool can_send(const struct connection *c)
{
	const struct load_plan *plan = c->thread->plan;

	return c->fd >= 0 && !c->backlog && !c->connecting && !c->parked &&
	       (!plan->reconnect_after || c->taken < plan->reconnect_after);
}

/* The connection of a group that has been idle longest, else one with room, else NULL. */
static inline struct connection *connection_list_first(const struct group *g)
{
	struct connection *c = TAILQ_FIRST(&g->idle);

	return c ? c : TAILQ_FIRST(&g->partial);
}

/* Puts a connection, which is on no list, at the end of one. */
static inline void connection_list_add(struct connection *c, struct connection_list *list)
{
	TAILQ_INSERT_TAIL(list, c, list_entry);
	c->list = list;
}

/* Takes it off its list, if it is on one. */
static inline void connection_list_remove(struct connection *c)
{
	if (c->list)
		TAILQ_REMOVE(c->list, c, list_entry);
	c->list = NULL;
}

/* Puts the connection on the list that it belongs to now. */
void connection_list_update(struct connection *c);

#endif

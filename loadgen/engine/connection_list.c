/* SPDX-License-Identifier: MIT */
/* Connections with space are on a list, so that finding one costs the same with ten connections and with ten
 * thousand. */
#include "connection_list.h"

/* Appended to its list: the connection idle longest is first. */
void connection_list_update(struct connection *c)
{
	connection_list_remove(c);
	if (can_send(c) && c->in_flight < c->thread->plan->pipeline)
		connection_list_add(c, c->in_flight == 0 ? &c->group->idle : &c->group->partial);
}

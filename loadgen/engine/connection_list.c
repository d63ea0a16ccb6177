/* SPDX-License-Identifier: MIT */
/* Who has room is on a list, so that finding one costs the same with ten connections and with ten thousand.
 */
#include "connection_list.h"

/* At the end of its list: the connection idle longest is first. */
void settle_room(struct connection *c)
{
	leave_room(c);
	if (may_send(c) && c->in_flight < c->thread->plan->pipeline)
		enter_room(c, c->in_flight == 0 ? &c->group->idle : &c->group->partial);
}

/* SPDX-License-Identifier: MIT */
/* The open loop: a request that falls due goes to the connection that has been idle longest, otherwise to one
 * with space in its pipeline. While none has space it waits, and its latency counts from when it was due. On
 * the hot path. */
#include "load_models.h"

#include "due_requests.h"
#include "event_loop.h"
#include "loadgen/engine/connection_events.h"
#include "loadgen/engine/connection_list.h"
#include "loadgen/engine/finish.h"
#include "loadgen/engine/lifecycle.h"
#include "loadgen/engine/load_thread.h"
#include "loadgen/engine/send.h"
#include "recording/recording.h"

static void pump(struct load_thread *t, uint64_t now_ns)
{
	const struct group *g = t->groups[0];
	struct connection *c;

	while (t->pacing.due_ns <= now_ns && connection_list_first(g)) {
		struct connection *batch = NULL, **last = &batch;

		/* Assigns all due requests, then writes once per connection. */
		while (t->pacing.due_ns <= now_ns && (c = connection_list_first(g))) {
			if (c->to_send == 0) {
				c->next_to_send = NULL;
				*last = c;
				last = &c->next_to_send;
			}
			take_up(c, t->pacing.due_ns);
			pacing_take(&t->pacing);
			connection_list_update(c);
		}
		while ((c = batch)) {
			batch = c->next_to_send;
			send_batch(c, 0);
		}
		now_ns = ft_now_ns();
	}
	if (connection_list_first(g))
		due_arm(t, t->pacing.due_ns);
	finish_if_done(t, now_ns);
}

static void on_room(struct connection *c, uint64_t now_ns)
{
	connection_list_update(c);
	pump(c->thread, now_ns);
}

static void on_answers(struct connection *c, uint64_t now_ns)
{
	const struct load_plan *plan = c->thread->plan;

	if (__builtin_expect(c->to_send > 0, 0)) { /* further steps */
		send_batch(c, 0);
		if (c->fd < 0)
			return;
	}
	if (__builtin_expect(plan->reconnect_after && c->in_flight == 0, 0) &&
	    c->taken >= plan->reconnect_after)
		connection_renew(c, now_ns);
	else
		connection_list_update(c);
	pump(c->thread, now_ns);
}

const struct load_model open_loop = {
    .init = event_loop_init,
    .run = event_loop_run,
    .pump = pump,
    .more = due_more,
    .fail_unsent = due_fail_unsent,
    .on_readable = connection_readable,
    .on_writable = connection_writable,
    .update_list = connection_list_update,
    .on_room = on_room,
    .on_answers = on_answers,
    .on_backlog = connection_keep_backlog,
    .on_loss = fail_in_flight,
    .step = send_step,
};

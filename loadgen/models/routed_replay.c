/* SPDX-License-Identifier: MIT */
/* A replay on several servers: a lane has a connection to each server and at most one outstanding request, so
 * that its records are executed in their order whatever the servers answer. */
#include "due_requests.h"
#include "load_models.h"
#include "loadgen/engine/finish.h"
#include "replay_lanes.h"
#include "routed_requests.h"

/* Sends a lane's next record if it is due. */
static void take_record(struct load_thread *t, struct lane *l, uint64_t now_ns)
{
	struct pending_request p;
	uint64_t due_ns;

	lane_skip_refused(t, l, now_ns);
	due_ns = lane_due_ns(t, l);
	if (l->next == REPLAY_END || due_ns > now_ns)
		return;
	p = lane_take(t, l, due_ns);
	t->in_flight++;
	routed_send(t, &p);
}

static void replay_pump(struct load_thread *t, uint64_t now_ns)
{
	struct replay_thread *rt = t->replay;
	struct lane *l;

	for (uint32_t i = 0; !rt->begun && i < rt->count; i++) {
		if (lane_due_ns(t, &rt->lanes[i]) == PACING_NEVER)
			lane_close(rt, &rt->lanes[i]);
		lane_make_ready(rt, &rt->lanes[i]);
	}
	rt->begun = true;
	while ((l = lanes_next_due(t, now_ns)))
		lane_make_ready(rt, l);
	while ((l = STAILQ_FIRST(&rt->ready_lanes))) {
		STAILQ_REMOVE_HEAD(&rt->ready_lanes, entry);
		l->ready = false;
		if (!rt->replay->timed && now_ns >= t->plan->end_ns)
			lane_close(rt, l);
		else
			take_record(t, l, now_ns);
	}
	routed_flush(t);
	if (rt->open > 0)
		due_arm(t, lanes_due_ns(t));
	finish_if_done(t, now_ns);
}

static bool replay_more(struct load_thread *t, uint64_t now_ns)
{
	if (!t->replay->replay->timed && now_ns >= t->plan->end_ns)
		lanes_end(t, now_ns);
	return t->replay->open > 0;
}

static void replay_free_thread(struct load_thread *t)
{
	lanes_free(t);
	routing_free(t);
}

/* The generator's own command was answered. */
static void on_own_answer(struct connection *c, unsigned status)
{
	(void)status;
	ring_drop(c);
	c->thread->in_flight--;
}

const struct load_model routed_replay = {
    ROUTED,
    .free = replay_free_thread,
    .pump = replay_pump,
    .more = replay_more,
    .fail_unsent = lanes_end,
    .on_own_answer = on_own_answer,
};

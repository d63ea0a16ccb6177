/* SPDX-License-Identifier: MIT */
/* Time-outs and profiles of connections: timers that repeat until the thread has finished. A time-out is
 * noticed up to a tenth of its length late, because requests have no individual timers. */
#include "connection_timers.h"

#include "loadgen/engine/lifecycle.h"
#include "loadgen/workload/profile.h"
#include "recording/recording.h"

enum { PROFILE_TICK_NS = 10000000 };

static void look_for_timeouts(void *who, uint64_t now_ns)
{
	struct load_thread *t = who;
	uint64_t limit = t->plan->timeout_ns;

	for (uint32_t i = 0; i < thread_connections(t) && !t->finished; i++) {
		struct connection *c = thread_connection(t, i);
		/* A request still waiting to be written has no start yet. */
		if (c->fd >= 0 && c->in_flight > c->to_send &&
		    c->pending[c->first].start_ns + limit <= now_ns)
			connection_fail(c, FT_STATUS_TIMEOUT, "no answer within --timeout");
	}
	if (!t->finished)
		timers_add(&t->alarms.timers, now_ns + (limit / 10 > 1000000 ? limit / 10 : 1000000),
			   look_for_timeouts, t);
}

/* Lets as many connections send as the profile says now. */
static void follow_profile(void *who, uint64_t now_ns)
{
	struct load_thread *t = who;
	const struct load_plan *plan = t->plan;
	double all = profile_value(plan->connections_over_time, (double)(now_ns - plan->start_ns) * 1e-9);
	uint32_t wanted = all <= 0 ? 0 : (uint32_t)(all * t->connection_count / plan->connections + 0.5);
	bool changed = false;

	for (uint32_t i = 0; i < t->connection_count; i++) {
		struct connection *c = thread_connection(t, i);
		bool park = i >= wanted;

		if (c->parked == park)
			continue;
		c->parked = park;
		changed = true;
		if (t->model->update_list)
			t->model->update_list(c);
	}
	if (changed && !t->finished)
		t->model->pump(t, now_ns);
	if (!t->finished)
		timers_add(&t->alarms.timers, now_ns + PROFILE_TICK_NS, follow_profile, t);
}

void connection_timers_start(struct load_thread *t)
{
	uint64_t now = ft_now_ns();

	if (t->plan->timeout_ns)
		look_for_timeouts(t, now);
	if (t->plan->connections_over_time)
		follow_profile(t, now);
}

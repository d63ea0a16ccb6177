/* SPDX-License-Identifier: MIT */
/* The closed loop: a connection keeps up to `pipeline` requests outstanding, sent `batch` at a time. It sends
 * the next ones when answers have freed space, at once or after a think time. On the hot path. */
#include "load_models.h"

#include "event_loop.h"
#include "loadgen/engine/connection_events.h"
#include "loadgen/engine/connection_list.h"
#include "loadgen/engine/finish.h"
#include "loadgen/engine/lifecycle.h"
#include "loadgen/engine/load_thread.h"
#include "loadgen/engine/send.h"
#include "recording/recording.h"

/* Takes as many requests as there is space and need for, and sends them. now_ns 0: unknown. */
static void refill(struct connection *c, uint64_t now_ns)
{
	struct load_thread *t = c->thread;
	const struct load_plan *plan = t->plan;

	while (can_send(c)) {
		uint32_t count = plan->batch;

		if (t->left < count)
			count = (uint32_t)t->left;
		if (plan->reconnect_after && plan->reconnect_after - c->taken < count)
			count = plan->reconnect_after - c->taken;
		if (count == 0 || t->stopping || (now_ns ? now_ns : ft_now_ns()) >= plan->end_ns)
			break;
		if (c->ring_size - c->in_flight < count)
			return;
		t->left -= count;
		while (count-- > 0)
			take_up(c, __builtin_expect(plan->stamped, 0) ? (now_ns ? now_ns : ft_now_ns()) : 0);
		send_batch(c, now_ns);
		now_ns = 0;
	}
	finish_if_done(t, now_ns ? now_ns : ft_now_ns());
}

/* At the start, and when a profile lets other connections send. */
static void pump(struct load_thread *t, uint64_t now_ns)
{
	(void)now_ns;
	for (uint32_t i = 0; i < t->connection_count && !t->finished; i++) {
		struct connection *c = thread_connection(t, i);

		if (c->fd >= 0 && c->in_flight == 0 && !c->waiting)
			refill(c, 0);
	}
}

/* Whether the connection has sent its number of requests and must be replaced. */
static bool is_worn_out(const struct connection *c)
{
	const struct load_thread *t = c->thread;

	return t->plan->reconnect_after && c->taken >= t->plan->reconnect_after && t->left > 0 &&
	       !t->stopping;
}

static void end_think(void *who, uint64_t now_ns)
{
	struct connection *c = who;

	c->waiting = false;
	if (c->fd >= 0 && is_worn_out(c))
		connection_renew(c, now_ns);
	else if (c->fd >= 0)
		refill(c, now_ns);
	else if (c->thread->plan->on_error == ON_ERROR_RECONNECT && !c->thread->stopping)
		connection_try_later(c, now_ns);
}

/* Sends nothing during the think time. */
static void think(struct connection *c, uint64_t now_ns)
{
	if (c->thread->left > 0 && now_ns < c->thread->plan->end_ns)
		connection_come_back(c, now_ns + c->thread->plan->think_ns, end_think);
	else
		finish_if_done(c->thread, now_ns);
}

/* There may be space. */
static inline void continue_load(struct connection *c, uint64_t now_ns)
{
	const struct load_plan *plan = c->thread->plan;

	if (plan->think_ns) {
		if (c->in_flight == 0 && !c->waiting)
			think(c, now_ns);
	} else if (c->in_flight == 0 && is_worn_out(c)) {
		connection_renew(c, now_ns);
	} else if (c->ring_size - c->in_flight >= plan->batch || c->in_flight == 0) {
		refill(c, now_ns);
	}
}

/* Separate, so that on_answers() needs to save nothing over a call if there are no further steps: at pipeline
 * 1 this saves 1 % of a GET's instructions (callgrind). */
static __attribute__((noinline)) void send_steps(struct connection *c, uint64_t now_ns)
{
	send_batch(c, 0);
	if (c->fd >= 0)
		continue_load(c, now_ns);
}

static void on_answers(struct connection *c, uint64_t now_ns)
{
	if (__builtin_expect(c->to_send > 0, 0))
		send_steps(c, now_ns);
	else
		continue_load(c, now_ns);
}

const struct load_model closed_loop = {
    .init = event_loop_init,
    .run = event_loop_run,
    .pump = pump,
    .more = closed_more,
    .on_readable = connection_readable,
    .on_writable = connection_writable,
    .on_room = refill,
    .on_answers = on_answers,
    .on_backlog = connection_keep_backlog,
    .on_loss = fail_in_flight,
    .step = send_step,
};

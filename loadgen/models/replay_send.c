/* SPDX-License-Identifier: MIT */
/* Replays a recording on one server: each of a thread's connections follows the chain of its records. The
 * commands of a recorded client stay in order on one connection, so that transactions stay complete; or the
 * commands of a key do (--replay-order). So a record cannot go to the connection that has been idle longest,
 * as in the open loop. A record that falls due while its connection has no space waits, and its latency
 * counts from when it was due. At full speed nothing is due by the clock: each connection sends its next
 * record as soon as it has space. */

#include "due_requests.h"
#include "event_loop.h"
#include "load_models.h"
#include "loadgen/engine/connection_events.h"
#include "loadgen/engine/finish.h"
#include "loadgen/engine/lifecycle.h"
#include "loadgen/engine/send.h"
#include "recording/recording.h"
#include "replay_lanes.h"

static struct connection *connection_of(const struct load_thread *t, uint32_t i)
{
	return &t->groups[0]->connections[i];
}

static inline uint32_t lane_index(const struct connection *c)
{
	const struct load_thread *t = c->thread;

	return c->id - t->plan->first_id - t->replay->first;
}

static bool has_room(const struct connection *c)
{
	return can_send(c) && c->in_flight < c->thread->plan->pipeline;
}

/* It will send nothing more. */
static bool is_dead(const struct connection *c)
{
	return c->fd < 0 && (c->thread->stopping || c->thread->plan->on_error != ON_ERROR_RECONNECT);
}

/* For a reopened connection that has sent nothing yet, `selecting` belongs to the previous socket. */
static bool is_selecting(const struct connection *c)
{
	return c->in_flight > 0 && c->thread->replay->lanes[lane_index(c)].selecting;
}

static void update_list(struct connection *c)
{
	struct replay_thread *rt = c->thread->replay;

	connection_list_remove(c);
	if (!rt || !rt->begun) /* connections are created before the thread gets its part of the recording */
		return;
	if (has_room(c) && !is_selecting(c) &&
	    lane_due_ns(c->thread, &rt->lanes[lane_index(c)]) <= rt->now_ns)
		connection_list_add(c, &rt->ready);
}

static void put(struct connection *c, const struct pending_request *p)
{
	*ring_add(c) = *p;
	c->taken++;
	c->thread->in_flight++;
}

/* Puts the lane's next record on its connection, or a SELECT that it needs before. */
static void put_next(struct connection *c, struct lane *l, uint64_t due_ns)
{
	struct load_thread *t = c->thread;
	const struct replay_record *r = &t->replay->replay->records[l->next];
	struct pending_request p = {
	    .intended_ns = due_ns,
	    .key = l->next,
	    .operation = r->operation,
	};

	if (c->taken == 0) {
		l->database = t->plan->database;
		l->selecting = false; /* that SELECT was lost with the connection */
	}
	if (!r->selects && r->database != l->database) {
		p = (struct pending_request){.key = r->database, .operation = t->plan->workload->select};
		l->selecting = true;
	} else {
		l->selecting = r->selects;
		lane_step(t, l);
	}
	l->database = r->database;
	put(c, &p);
}

/* Sends everything that is due and has space, in one write. */
static void fill(struct connection *c, uint64_t now_ns)
{
	struct load_thread *t = c->thread;
	struct lane *l = &t->replay->lanes[lane_index(c)];

	while (has_room(c) && !is_selecting(c)) {
		lane_skip_refused(t, l, now_ns);
		if (lane_due_ns(t, l) > now_ns)
			break;
		put_next(c, l, lane_due_ns(t, l));
	}
	if (c->to_send)
		send_batch(c, 0);
}

/* Up to now_ns: finds connections with something to send. */
static void move_cursor(struct load_thread *t, uint64_t now_ns)
{
	struct lane *l;

	while ((l = lanes_next_due(t, now_ns))) {
		struct connection *c = connection_of(t, (uint32_t)(l - t->replay->lanes));

		if (is_dead(c))
			lane_give_up(t, l, now_ns);
		else if (!c->list)
			update_list(c);
	}
}

static void pump(struct load_thread *t, uint64_t now_ns)
{
	struct replay_thread *rt = t->replay;
	struct connection *c;

	if (!rt->begun) {
		rt->begun = true;
		rt->now_ns = now_ns;
		for (uint32_t i = 0; i < rt->count; i++) {
			if (lane_due_ns(t, &rt->lanes[i]) == PACING_NEVER)
				lane_close(rt, &rt->lanes[i]);
			update_list(connection_of(t, i));
		}
	}
	for (;;) {
		move_cursor(t, now_ns);
		c = TAILQ_FIRST(&rt->ready);
		if (!c)
			break;
		connection_list_remove(c);
		if (!rt->replay->timed && now_ns >= t->plan->end_ns)
			lane_close(rt, &rt->lanes[lane_index(c)]);
		else
			fill(c, now_ns);
		now_ns = ft_now_ns();
	}
	if (rt->open > 0)
		due_arm(t, lanes_due_ns(t));
	finish_if_done(t, now_ns);
}

static bool more(struct load_thread *t, uint64_t now_ns)
{
	struct replay_thread *rt = t->replay;

	if (!rt->replay->timed && now_ns >= t->plan->end_ns)
		lanes_end(t, now_ns);
	if (rt->alive != t->alive) {
		rt->alive = t->alive;
		for (uint32_t i = 0; i < rt->count; i++)
			if (rt->lanes[i].next != REPLAY_END && is_dead(connection_of(t, i)))
				lane_give_up(t, &rt->lanes[i], now_ns);
	}
	return rt->open > 0;
}

/* The server lacks the database that the lane has just selected: another one is still selected. */
static void refuse(struct load_thread *t, struct lane *l)
{
	lanes_refuse(t->replay, l->database);
	l->database = LANE_NO_DATABASE;
}

/* The generator's SELECT that the connection waited for was answered. */
static void on_select(struct connection *c, unsigned status)
{
	struct load_thread *t = c->thread;
	struct lane *l = &t->replay->lanes[lane_index(c)];

	ring_drop(c);
	t->in_flight--;
	l->selecting = false;
	if (status_is_error(status))
		refuse(t, l);
}

/* A recorded SELECT may be refused, too. */
static void on_end(struct connection *c, const struct pending_request *p, uint64_t now_ns, unsigned status)
{
	struct load_thread *t = c->thread;
	struct lane *l = &t->replay->lanes[lane_index(c)];

	(void)now_ns;
	if (!t->replay->replay->records[p->key].selects)
		return;
	l->selecting = false;
	if (status_is_error(status))
		refuse(t, l);
}

static void on_room(struct connection *c, uint64_t now_ns)
{
	update_list(c);
	pump(c->thread, now_ns);
}

static void on_answers(struct connection *c, uint64_t now_ns)
{
	if (c->to_send > 0)
		send_batch(c, 0);
	if (c->fd >= 0)
		on_room(c, now_ns);
}

const struct load_model replay_send = {
    .init = event_loop_init,
    .run = event_loop_run,
    .free = lanes_free,
    .pump = pump,
    .more = more,
    .fail_unsent = lanes_end,
    .on_readable = connection_readable,
    .on_writable = connection_writable,
    .update_list = update_list,
    .on_room = on_room,
    .on_answers = on_answers,
    .on_backlog = connection_keep_backlog,
    .on_loss = fail_in_flight,
    .step = send_step,
    .on_end = on_end,
    .on_own_answer = on_select,
};

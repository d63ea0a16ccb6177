/* SPDX-License-Identifier: MIT */
/* A load thread's part of a replay. The thread walks the shared array once, to find when each record falls
 * due. If the record's connection has space, it sends the record; otherwise it does so when it has space. */
#include "replay_send.h"

#include <errno.h>
#include <stdlib.h>

#include "due_requests.h"
#include "event_loop.h"
#include "loadgen/engine/connection_events.h"
#include "loadgen/engine/connection_list.h"
#include "loadgen/engine/finish.h"
#include "loadgen/engine/lifecycle.h"
#include "loadgen/engine/load_thread.h"
#include "loadgen/engine/request_end.h"
#include "loadgen/engine/send.h"
#include "loadgen/replay/replay.h"
#include "recording/recording.h"

/* A connection's position in its chain. */
struct lane {
	uint32_t next;	   /* record, or REPLAY_END */
	uint32_t database; /* the database after everything sent to the connection has been executed */
	uint64_t round;	   /* of -l */
	bool selecting;	   /* a SELECT of the generator is outstanding: nothing is sent after it */
	bool refused;	   /* it was refused; later commands would hit another database */
};

struct replay_thread {
	const struct replay *replay;
	struct lane *lanes;
	uint32_t first, count; /* connections of this thread, among the test's */
	uint32_t open;	       /* lanes with a record left */
	uint32_t alive;	       /* the thread's live connections, when last checked */
	uint32_t cursor;       /* the next record to fall due, or REPLAY_END */
	uint64_t cursor_round;
	uint64_t now_ns; /* the time that the cursor has reached */
	uint64_t abandoned;
	int64_t refused; /* database, or -1 */
	bool begun;
	struct connection_list ready; /* they have space and something to send */
};

int replay_begin(struct load_thread *t, uint32_t first)
{
	const struct replay *r = t->plan->workload->recorded.replay;
	struct replay_thread *rt = calloc(1, sizeof(*rt));

	if (!rt)
		return -ENOMEM;
	t->replay = rt;
	TAILQ_INIT(&rt->ready);
	rt->replay = r;
	rt->first = first;
	rt->count = t->connection_count;
	rt->alive = t->alive;
	rt->refused = -1;
	rt->cursor = r->timed && r->count ? 0 : REPLAY_END;
	rt->lanes = calloc(rt->count, sizeof(*rt->lanes));
	if (!rt->lanes)
		return -ENOMEM;
	for (uint32_t i = 0; i < rt->count; i++) {
		rt->lanes[i].next = r->heads[first + i];
		rt->open += rt->lanes[i].next != REPLAY_END;
	}
	return 0;
}

static void release(struct load_thread *t)
{
	if (t->replay)
		free(t->replay->lanes);
	free(t->replay);
	t->replay = NULL;
}

static struct connection *connection_of(const struct load_thread *t, uint32_t i)
{
	return &t->groups[0]->connections[i];
}

static inline uint32_t lane_index(const struct connection *c)
{
	const struct load_thread *t = c->thread;

	return c->id - t->plan->first_id - t->replay->first;
}

/* When a record is due, 0 at full speed. PACING_NEVER: after the end. */
static uint64_t due_ns(const struct load_thread *t, uint32_t record, uint64_t round)
{
	const struct replay *r = t->replay->replay;
	uint64_t offset, due;

	if (!r->timed)
		return 0;
	offset = r->records[record].due_ns + round * r->span_ns;
	due = t->plan->start_ns + (uint64_t)((double)offset / r->speed);
	return due < t->plan->end_ns ? due : PACING_NEVER;
}

static uint64_t lane_due_ns(const struct load_thread *t, const struct lane *l)
{
	return l->next == REPLAY_END ? PACING_NEVER : due_ns(t, l->next, l->round);
}

static void close_lane(struct replay_thread *rt, struct lane *l)
{
	if (l->next != REPLAY_END)
		rt->open--;
	l->next = REPLAY_END;
}

/* Moves to the next record of the chain, or back to the first. */
static void lane_step(struct load_thread *t, struct lane *l)
{
	struct replay_thread *rt = t->replay;
	uint32_t next = rt->replay->records[l->next].next;

	if (next == REPLAY_END && t->plan->replay_loop) {
		next = rt->replay->heads[rt->first + (uint32_t)(l - rt->lanes)];
		l->round++;
	}
	if (next == REPLAY_END || due_ns(t, next, l->round) == PACING_NEVER)
		close_lane(rt, l);
	else
		l->next = next;
}

static bool has_room(const struct connection *c)
{
	return can_send(c) && c->in_flight < c->thread->plan->pipeline;
}

/* It will send nothing more. */
static bool is_dead(const struct connection *c)
{
	if (c->thread->replay->lanes[lane_index(c)].refused)
		return true;
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

/* Sends everything that is due and has space, in one write. */
static void fill(struct connection *c, uint64_t now_ns)
{
	struct load_thread *t = c->thread;
	struct lane *l = &t->replay->lanes[lane_index(c)];

	while (has_room(c) && l->next != REPLAY_END && !is_selecting(c)) {
		const struct replay_record *r = &t->replay->replay->records[l->next];
		uint64_t due = lane_due_ns(t, l);
		struct pending_request p = {
		    .intended_ns = due,
		    .key = l->next,
		    .operation = r->operation,
		};

		if (due > now_ns)
			break;
		if (c->taken == 0) {
			l->database = t->plan->database;
			l->selecting = false; /* that SELECT was lost with the connection */
		}
		if (!r->selects && r->database != l->database) {
			p = (struct pending_request){.key = r->database,
						     .operation = t->plan->workload->select};
			l->database = r->database;
			l->selecting = true;
			put(c, &p);
			continue;
		}
		if (r->selects)
			l->database = r->database;
		put(c, &p);
		lane_step(t, l);
	}
	if (c->to_send)
		send_batch(c, 0);
}

/* Counts due records that will never be sent because their connection is gone. */
static void give_up_lane(struct load_thread *t, struct lane *l, uint64_t now_ns)
{
	const struct replay *r = t->replay->replay;

	if (!r->timed) {
		for (uint32_t i = l->next; i != REPLAY_END; i = r->records[i].next)
			t->replay->abandoned++;
		close_lane(t->replay, l);
		return;
	}
	while (lane_due_ns(t, l) <= now_ns) {
		struct pending_request p = {
		    .intended_ns = lane_due_ns(t, l),
		    .start_ns = now_ns,
		    .operation = r->records[l->next].operation,
		};

		record_end(t, NO_CONNECTION, &p, now_ns, FT_STATUS_UNSENT, 0);
		lane_step(t, l);
	}
}

/* When the next record of any connection of the test falls due. */
static uint64_t cursor_due_ns(const struct load_thread *t)
{
	const struct replay_thread *rt = t->replay;

	return rt->cursor == REPLAY_END ? PACING_NEVER : due_ns(t, rt->cursor, rt->cursor_round);
}

/* Up to now_ns: finds connections with something to send. */
static void move_cursor(struct load_thread *t, uint64_t now_ns)
{
	struct replay_thread *rt = t->replay;
	const struct replay *r = rt->replay;

	rt->now_ns = now_ns;
	while (cursor_due_ns(t) <= now_ns) {
		uint32_t i = r->records[rt->cursor].client % r->connections - rt->first;

		if (i < rt->count) {
			struct connection *c = connection_of(t, i);

			if (is_dead(c))
				give_up_lane(t, &rt->lanes[i], now_ns);
			else if (!c->list)
				update_list(c);
		}
		if (++rt->cursor < r->count)
			continue;
		rt->cursor = t->plan->replay_loop ? 0 : REPLAY_END;
		rt->cursor_round++;
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
				close_lane(rt, &rt->lanes[i]);
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
			close_lane(rt, &rt->lanes[lane_index(c)]);
		else
			fill(c, now_ns);
		now_ns = ft_now_ns();
	}
	if (rt->open > 0)
		due_arm(t, cursor_due_ns(t));
	finish_if_done(t, now_ns);
}

static void fail_unsent_records(struct load_thread *t, uint64_t now_ns)
{
	struct replay_thread *rt = t->replay;

	t->lane.patient = true;
	for (uint32_t i = 0; i < rt->count; i++) {
		if (rt->replay->timed)
			give_up_lane(t, &rt->lanes[i], now_ns);
		close_lane(rt, &rt->lanes[i]);
	}
	rt->cursor = REPLAY_END;
}

static bool more(struct load_thread *t, uint64_t now_ns)
{
	struct replay_thread *rt = t->replay;

	if (!rt->replay->timed && now_ns >= t->plan->end_ns)
		fail_unsent_records(t, now_ns);
	if (rt->alive != t->alive) {
		rt->alive = t->alive;
		for (uint32_t i = 0; i < rt->count; i++)
			if (rt->lanes[i].next != REPLAY_END && is_dead(connection_of(t, i)))
				give_up_lane(t, &rt->lanes[i], now_ns);
	}
	return rt->open > 0;
}

uint64_t replay_abandoned_count(const struct load_thread *t)
{
	return t->replay ? t->replay->abandoned : 0;
}

/* The generator's SELECT that the connection waited for was answered. */
static void on_select(struct connection *c, unsigned status)
{
	struct load_thread *t = c->thread;
	struct lane *l = &t->replay->lanes[lane_index(c)];

	ring_drop(c);
	t->in_flight--;
	l->selecting = false;
	if (!status_is_error(status))
		return;
	l->refused = true;
	t->replay->refused = l->database;
	give_up_lane(t, l, ft_now_ns());
}

int64_t replay_refused_database(const struct load_thread *t)
{
	return t->replay ? t->replay->refused : -1;
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
    .free = release,
    .pump = pump,
    .more = more,
    .fail_unsent = fail_unsent_records,
    .on_readable = connection_readable,
    .on_writable = connection_writable,
    .update_list = update_list,
    .on_room = on_room,
    .on_answers = on_answers,
    .on_backlog = connection_keep_backlog,
    .on_loss = fail_in_flight,
    .step = send_step,
    .on_own_answer = on_select,
};

/* SPDX-License-Identifier: MIT */
/* A recording's commands, in lanes that keep their order.
 *
 * The array of records is read-only, so a lane is a position in a chain of records and what its connections
 * have received. */
#include <errno.h>
#include <stdlib.h>

#include "load_models.h"
#include "loadgen/engine.h"
#include "loadgen/models.h"
#include "recording/recording.h"

int replay_begin(struct load_thread *t, uint32_t first)
{
	const struct replay *r = t->plan->workload->recorded.replay;
	struct replay_thread *rt = calloc(1, sizeof(*rt));

	if (!rt)
		return -ENOMEM;
	t->replay = rt;
	TAILQ_INIT(&rt->ready);
	STAILQ_INIT(&rt->ready_lanes);
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
		rt->lanes[i].begin = REPLAY_END;
		rt->open += rt->lanes[i].next != REPLAY_END;
	}
	return 0;
}

void lanes_free(struct load_thread *t)
{
	if (t->replay)
		free(t->replay->lanes);
	free(t->replay);
	t->replay = NULL;
}

uint64_t replay_abandoned_count(const struct load_thread *t)
{
	return t->replay ? t->replay->abandoned : 0;
}

int64_t replay_refused_database(const struct load_thread *t)
{
	return t->replay ? t->replay->refused : -1;
}

/* ---- positions ---- */

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

uint64_t lane_due_ns(const struct load_thread *t, const struct lane *l)
{
	return l->next == REPLAY_END ? PACING_NEVER : due_ns(t, l->next, l->round);
}

void lane_close(struct replay_thread *rt, struct lane *l)
{
	if (l->next != REPLAY_END)
		rt->open--;
	l->next = REPLAY_END;
}

/* The lane's number among the test's. */
static uint32_t lane_number(const struct replay_thread *rt, const struct lane *l)
{
	return rt->first + (uint32_t)(l - rt->lanes);
}

void lane_step(struct load_thread *t, struct lane *l)
{
	struct replay_thread *rt = t->replay;
	uint32_t next = rt->replay->records[l->next].next;

	if (next == REPLAY_END && t->plan->options->loop) {
		next = rt->replay->heads[lane_number(rt, l)];
		l->round++;
	}
	if (next == REPLAY_END || due_ns(t, next, l->round) == PACING_NEVER)
		lane_close(rt, l);
	else
		l->next = next;
}

/* When the last record falls due, or the test ends before. PACING_NEVER: the file is repeated. */
static uint64_t planned_end_ns(const struct load_thread *t)
{
	const struct replay *r = t->replay->replay;
	uint64_t last_ns = t->plan->options->loop ? PACING_NEVER : due_ns(t, r->count - 1, 0);

	return last_ns < t->plan->end_ns ? last_ns : t->plan->end_ns;
}

/* Counts the next record as not sent, if it has a time, and moves on. It ends at end_ns. */
static void skip(struct load_thread *t, struct lane *l, uint64_t end_ns)
{
	const struct replay *r = t->replay->replay;
	struct pending_request p = {
	    .intended_ns = lane_due_ns(t, l),
	    .start_ns = end_ns,
	    .operation = r->records[l->next].operation,
	};

	if (r->timed)
		record_end(t, NO_CONNECTION, &p, end_ns, FT_STATUS_UNSENT, 0);
	lane_step(t, l);
}

void lane_give_up(struct load_thread *t, struct lane *l, uint64_t now_ns)
{
	const struct replay *r = t->replay->replay;

	if (!r->timed) {
		for (uint32_t i = l->next; i != REPLAY_END; i = r->records[i].next)
			t->replay->abandoned++;
		lane_close(t->replay, l);
		return;
	}
	while (lane_due_ns(t, l) <= now_ns)
		skip(t, l, now_ns);
}

void lanes_refuse(struct replay_thread *rt, uint32_t database)
{
	rt->refused = database;
	rt->refusals[database / 8] |= (uint8_t)(1u << database % 8);
}

void lane_skip_refused(struct load_thread *t, struct lane *l, uint64_t now_ns)
{
	struct replay_thread *rt = t->replay;

	while (lane_due_ns(t, l) <= now_ns) {
		uint32_t database = rt->replay->records[l->next].database;

		if (t->plan->nodes && database > 0)
			lanes_refuse(rt, database); /* a cluster has database 0 only */
		if (!(rt->refusals[database / 8] & 1u << database % 8))
			return;
		skip(t, l, now_ns);
	}
}

uint64_t lanes_due_ns(const struct load_thread *t)
{
	const struct replay_thread *rt = t->replay;

	return rt->cursor == REPLAY_END ? PACING_NEVER : due_ns(t, rt->cursor, rt->cursor_round);
}

struct lane *lanes_next_due(struct load_thread *t, uint64_t now_ns)
{
	struct replay_thread *rt = t->replay;
	const struct replay *r = rt->replay;

	rt->now_ns = now_ns;
	while (lanes_due_ns(t) <= now_ns) {
		uint32_t i = r->records[rt->cursor].lane % r->connections - rt->first;

		if (++rt->cursor == r->count) {
			rt->cursor = t->plan->options->loop ? 0 : REPLAY_END;
			rt->cursor_round++;
		}
		if (i < rt->count)
			return &rt->lanes[i];
	}
	return NULL;
}

void lanes_end(struct load_thread *t, uint64_t now_ns)
{
	struct replay_thread *rt = t->replay;
	uint64_t end_ns = rt->replay->timed && loss_is_final(t) ? planned_end_ns(t) : now_ns;

	if (end_ns == PACING_NEVER || end_ns < now_ns)
		end_ns = now_ns;
	t->lane.waits_for_spare = true;
	for (uint32_t i = 0; i < rt->count; i++) {
		while (rt->replay->timed && lane_due_ns(t, &rt->lanes[i]) <= end_ns)
			skip(t, &rt->lanes[i], end_ns);
		lane_close(rt, &rt->lanes[i]);
	}
	rt->cursor = REPLAY_END;
}

/* ---- several servers ---- */

static const struct replay_record *record_of(const struct load_thread *t, const struct pending_request *p)
{
	return &t->replay->replay->records[(uint32_t)p->key];
}

struct lane *lane_of(const struct load_thread *t, const struct pending_request *p)
{
	const struct replay_thread *rt = t->replay;

	return &rt->lanes[record_of(t, p)->lane % rt->replay->connections - rt->first];
}

uint32_t lane_slot(const struct load_thread *t, const struct pending_request *p)
{
	const struct replay_thread *rt = t->replay;

	return (uint32_t)((uint64_t)lane_number(rt, lane_of(t, p)) * REPLAY_SLOTS / rt->replay->connections);
}

void lane_make_ready(struct replay_thread *rt, struct lane *l)
{
	if (l->busy || l->ready || l->next == REPLAY_END)
		return;
	l->ready = true;
	STAILQ_INSERT_TAIL(&rt->ready_lanes, l, entry);
}

struct pending_request lane_take(struct load_thread *t, struct lane *l, uint64_t due)
{
	const struct replay *r = t->replay->replay;
	const struct replay_record *record = &r->records[l->next];
	const struct pending_request p = {.intended_ns = due, .key = l->next, .operation = record->operation};

	/* A repetition of the file continues no transaction. */
	if (l->next == r->heads[lane_number(t->replay, l)]) {
		l->begin = REPLAY_END;
		l->home = NULL;
	}
	if (l->begin == REPLAY_END && record->part != REPLAY_PLAIN)
		l->begin = l->next;
	l->busy = true;
	lane_step(t, l);
	return p;
}

/* The next record of the lane's transaction after record `i`. */
static uint32_t next_part(const struct replay *r, uint32_t i)
{
	do
		i = r->records[i].next;
	while (i != REPLAY_END && r->records[i].part == REPLAY_PLAIN);
	return i;
}

void lane_release(struct load_thread *t, const struct pending_request *p)
{
	const struct replay_record *record = record_of(t, p);
	struct lane *l = lane_of(t, p);

	l->busy = false;
	if (record->part == REPLAY_EXEC || record->part == REPLAY_UNWATCH) {
		l->begin = REPLAY_END;
		l->home = NULL;
	} else if (record->part != REPLAY_PLAIN && l->due_part == p->key) {
		l->due_part = next_part(t->replay->replay, (uint32_t)p->key);
	}
	lane_make_ready(t->replay, l);
}

struct connection *lane_home(const struct load_thread *t, const struct pending_request *p)
{
	return record_of(t, p)->part == REPLAY_PLAIN ? NULL : lane_of(t, p)->home;
}

bool lane_needs_part(struct load_thread *t, struct connection *c, const struct pending_request *p,
		     struct pending_request *part)
{
	struct lane *l = lane_of(t, p);

	if (record_of(t, p)->part == REPLAY_PLAIN)
		return false;
	if (l->home != c) {
		l->home = c;
		l->due_part = l->begin;
	}
	if (l->due_part == p->key)
		return false;
	*part = (struct pending_request){.key = REPLAY_AGAIN | l->due_part,
					 .operation = t->plan->workload->select};
	l->due_part = next_part(t->replay->replay, l->due_part);
	return true;
}

bool lane_is_queued(const struct load_thread *t, const struct pending_request *p)
{
	const struct replay_record *record = record_of(t, p);

	return record->part == REPLAY_QUEUED || record->part == REPLAY_EXEC;
}

bool lane_leave(struct load_thread *t, const struct connection *c, const struct pending_request *p,
		struct pending_request *discard)
{
	const struct replay_record *record = record_of(t, p);
	struct lane *l = lane_of(t, p);

	if (record->part == REPLAY_PLAIN || l->home != c)
		return false;
	l->home = NULL;
	*discard = (struct pending_request){.key = REPLAY_DISCARD, .operation = t->plan->workload->select};
	return record->part == REPLAY_QUEUED; /* a server that redirects EXEC has discarded the others */
}

void lane_lose(struct load_thread *t, const struct connection *c)
{
	struct lane *l = &t->replay->lanes[c - c->group->connections];

	if (l->home == c)
		l->home = NULL;
}

/* Replays a recording on one server: each of a thread's connections follows the chain of its records. The
 * commands of a recorded client stay in order on one connection, so that transactions stay complete; or the
 * commands of a key do (--replay-order). So a record cannot go to the connection that has been idle longest,
 * as in the open loop. A record that falls due while its connection has no space waits, and its latency
 * counts from when it was due. At full speed nothing is due by the clock: each connection sends its next
 * record as soon as it has space. */

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
	return can_send(c) && c->in_flight < c->thread->plan->options->pipeline;
}

/* It will send nothing more. */
static bool is_dead(const struct connection *c)
{
	return c->fd < 0 && (c->thread->stopping || c->thread->plan->options->on_error != ON_ERROR_RECONNECT);
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
		l->database = t->plan->options->database;
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

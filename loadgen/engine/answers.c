/* SPDX-License-Identifier: MIT */
/* The hot path's other half: what came from a server, cut into answers, and what each means for the request
 * that it is to: its next step, another server, or its end, which is counted and logged.
 *
 * Answers come in the order of requests, but for what `odd` in struct connection tells: answers to set-up
 * commands, to an ASKING, to memcached's quiet reads. RESP3's pushes may come anywhere.
 */
#include "behind.h"
#include "inspection.h"
#include "memcached_login.h"
#include "recording/recording.h"
#include "replay_send.h"
#include "thread.h"

/* ---- the end of a request ---- */

static inline void record(struct load_thread *t, uint32_t connection, const struct pending *p,
			  uint64_t end_ns, unsigned status, uint64_t bytes)
{
	const struct workload *w = t->plan->workload;
	struct ft_request q = {
	    .intended_ns = p->intended_ns,
	    .start_ns = p->start_ns,
	    .end_ns = end_ns,
	    .connection = connection,
	    .op = p->operation,
	    .status = (uint8_t)status,
	};

	if (__builtin_expect(p->intended_ns >= t->plan->measure_ns, 1)) {
		t->counting = true;
		stats_add(t->stats, p->operation, status, end_ns - p->intended_ns, bytes);
	}
	if (end_ns - p->intended_ns >= t->plan->log_over_ns || status_is_error(status)) {
		/* What never got a connection never got a key. */
		if (__builtin_expect(t->plan->behind != NULL, 0) && connection != NO_CONNECTION)
			q.behind = behind_of(t->plan->behind, w, p->operation, p->key, &t->key_name);
		log_append(&t->lane, &q);
	}
	if (w->growing && w->operations[p->operation].inserts && connection != NO_CONNECTION)
		key_base_ack(w->base, p->key);
	if (__builtin_expect(status_is_error(status), 0)) {
		if (p->intended_ns >= t->plan->measure_ns)
			stats_note_error(t->stats, status, end_ns);
		count_error(t);
	}
}

void record_end(struct load_thread *t, uint32_t connection, const struct pending *p, uint64_t end_ns,
		unsigned status, uint64_t bytes)
{
	if (t->plan->workload->operations[p->operation].internal)
		return;
	record(t, connection, p, end_ns, status, bytes);
}

/* ---- an answer to the oldest request ---- */

/* ---- answers in ---- */

/* Has a look at a whole reply that was gathered. Returns the request's status. */
static unsigned inspect(struct connection *c, const struct pending *p, unsigned status)
{
	struct load_thread *t = c->thread;
	const struct workload *w = t->plan->workload;
	int64_t wrong;

	if (status != FT_STATUS_OK)
		return status;
	if (p->step < STEPS_MAX && w->operations[p->operation].steps[p->step].least) {
		if (inspection_number(c->inspection) >= w->operations[p->operation].steps[p->step].least)
			return status;
		if (p->intended_ns >= t->plan->measure_ns)
			stats_error_word(t->stats, "NOREPLICAS", ft_now_ns());
		return FT_STATUS_ERROR_REPLY;
	}
	if (w->operations[p->operation].scan) {
		inspection_capture(c->inspection);
		return status;
	}
	wrong = inspection_check(c->inspection, w, p->key);
	if (wrong == -1)
		return status;
	if (!t->wrong.found)
		t->wrong = (struct wrong_byte){true, p->key, wrong};
	return FT_STATUS_WRONG;
}

/* How many commands the operation takes on this connection. */
static inline uint32_t steps_of(const struct connection *c, const struct operation *o)
{
	return o->scan ? 1 + (c->inspection ? c->inspection->captured : 0) : o->step_count;
}

/* An error reply. True: with several servers, one that sends the request elsewhere; it is on its way. */
static bool refused(struct connection *c, const struct pending *p, const char *word, uint64_t now_ns,
		    uint64_t bytes)
{
	struct load_thread *t = c->thread;

	if (t->routing && routed_again(c, p, now_ns)) {
		count_bytes(t, p->operation, bytes);
		if (c->inspection)
			inspection_reset(c->inspection);
		c->first = ring_index(c, 1);
		c->in_flight--;
		return true;
	}
	if (p->intended_ns >= t->plan->measure_ns)
		stats_error_word(t->stats, word, now_ns);
	return false;
}

/* The answer to the oldest request is complete: the next step of its operation, or its end. */
static inline void answered(struct connection *c, uint64_t now_ns, uint64_t bytes)
{
	struct load_thread *t = c->thread;
	const struct workload *w = t->plan->workload;
	struct pending *p = &c->pending[c->first], old;
	const struct operation *o = &w->operations[p->operation];
	uint32_t step = p->step < STEPS_MAX ? p->step : STEPS_MAX - 1u;
	const char *word = NULL;
	unsigned status;

	status = reply_status(w->protocol, &c->scan, &o->steps[step], &word);
	bytes += o->steps[step].length;
	if (__builtin_expect(word != NULL, 0) && refused(c, p, word, now_ns, bytes))
		return;
	if (__builtin_expect(c->inspection != NULL, 0) && inspection_wanted(w, o, p->step))
		status = inspect(c, p, status);
	if (__builtin_expect(o->step_count > 1, 0) && o->internal) {
		replay_selected(c, status);
		return;
	}
	if (__builtin_expect(o->step_count > 1, 0) && !status_is_error(status) &&
	    p->step + 1u < steps_of(c, o)) {
		old = *p;
		old.step++;
		c->first = ring_index(c, 1);
		count_bytes(t, old.operation, bytes);
		if (t->routing) {
			c->in_flight--;
			routed_step(c, &old);
			return;
		}
		c->pending[ring_index(c, c->in_flight - 1)] = old;
		c->to_send++;
		return;
	}
	record(t, c->id, p, now_ns, status, bytes);
	if (__builtin_expect(t->routing != NULL, 0))
		routed_ended(t, c->group, p, now_ns, status);
	if (__builtin_expect(c->inspection != NULL, 0))
		inspection_reset(c->inspection);
	c->first = ring_index(c, 1);
	c->in_flight--;
	t->in_flight--;
}

/* ---- what may be none ---- */

/* An answer to a set-up command of a connection that was opened again. */
static bool greeted(struct connection *c)
{
	enum protocol protocol = c->thread->plan->workload->protocol;
	bool accepted = protocol != PROTOCOL_REDIS ? memcached_login_accepted(protocol, &c->scan)
			: c->scan.resp.kind != '-' ? true
						   : c->greetings == 1 && c->group->endpoint->named;

	if (!accepted) {
		connection_fail(c, FT_STATUS_REFUSED,
				"the server refused the login of a connection opened again");
		return false;
	}
	c->greetings--;
	return true;
}

/* An answer, complete or not, that may be none to the oldest request. 1: it was none, 0: it is one, -1: the
 * connection is gone. */
static int odd_answer(struct connection *c, bool complete, uint64_t now_ns)
{
	if (c->greetings)
		return !complete || greeted(c) ? 1 : -1;
	if (c->batch_ends)
		return !complete || meta_answer(c, now_ns) != META_LOST ? 1 : -1;
	if (c->meta) {
		switch (complete ? meta_answer(c, now_ns) : META_ANSWERS_OLDEST) {
		case META_LOST:
			return -1;
		case META_ANSWERS_OLDEST:
			return 0;
		case META_ANSWERS_NONE:
			if (c->inspection)
				inspection_reset(c->inspection);
			return 1;
		}
	}
	if (c->pending[c->first].operation != NO_OPERATION)
		return 0;
	if (!complete)
		return 1;
	/* Whatever it says to ASKING: the answer behind it tells. */
	c->first = ring_index(c, 1);
	c->in_flight--;
	c->asks--;
	return 1;
}

/* What is no answer to the oldest request: a push, or nothing that may come. */
static bool take_push(struct connection *c, int complete, uint64_t now_ns)
{
	struct load_thread *t = c->thread;

	if (complete < 0 || !t->plan->resp3) {
		connection_fail(c, FT_STATUS_WRONG, "the server sent what is no reply in this protocol");
		return false;
	}
	if (now_ns >= t->plan->measure_ns)
		t->stats->pushes++;
	if (c->inspection)
		inspection_reset(c->inspection); /* parts of it were gathered as if it were the answer */
	return true;
}

/* Bytes while no answer is awaited: pushes, or parts of one. */
static bool take_unasked(struct connection *c, const char **at, const char *end, uint64_t now_ns)
{
	const struct load_plan *plan = c->thread->plan;
	uint8_t kind;
	int complete;

	if (plan->resp3) {
		complete = reply_scan(plan->workload->protocol, &c->scan, at, end);
		kind = c->scan.resp.kind;
		if (complete == 2)
			return take_push(c, complete, now_ns);
		if (complete == 0 && (kind == '>' || kind == '|'))
			return true;
	}
	connection_fail(c, FT_STATUS_WRONG, "the server sent an answer to no request");
	return false;
}

/* ---- all of them ---- */

bool take_answers(struct connection *c, const char *at, const char *end, uint64_t now_ns)
{
	struct load_thread *t = c->thread;
	const struct workload *w = t->plan->workload;

	while (at < end) {
		const char *from = at;
		const struct pending *p = &c->pending[c->first];
		bool gather;
		int complete, odd;

		if (c->in_flight == c->to_send && !c->greetings && !c->batch_ends) {
			if (!take_unasked(c, &at, end, now_ns))
				return false;
			continue;
		}
		complete = reply_scan(w->protocol, &c->scan, &at, end);
		if (__builtin_expect((unsigned)complete > 1, 0)) {
			if (!take_push(c, complete, now_ns))
				return false;
			continue;
		}
		if (__builtin_expect(c->odd != 0, 0)) {
			odd = odd_answer(c, complete != 0, now_ns);
			if (odd < 0)
				return false;
			if (odd > 0)
				continue;
		}
		gather = __builtin_expect(c->inspection != NULL, 0) &&
			 (inspection_wanted(w, &w->operations[p->operation], p->step) || w->quiet);
		if (gather)
			inspection_add(c->inspection, from, at);
		if (complete == 0) {
			if (!t->plan->resp3 || c->scan.resp.kind != '>')
				count_bytes(t, p->operation, (uint64_t)(at - from));
			return true;
		}
		answered(c, now_ns, (uint64_t)(at - from));
	}
	return true;
}

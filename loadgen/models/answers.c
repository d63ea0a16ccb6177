/* SPDX-License-Identifier: MIT */
/* Answers: taking them from a connection, ending their requests, and what remains at the end of a thread's
 * load. */
#include <unistd.h>

#include "loadgen/engine.h"
#include "loadgen/nodes.h"
#include "loadgen/workload.h"
#include "recording/recording.h"

/* The receiving half of the hot path: cuts received bytes into answers and applies each to its request: its
 * next step, another server, or its end, which is counted and logged. Answers arrive in the order of
 * requests, except those counted in `irregular` of struct connection: answers to set-up commands, to an
 * ASKING, to memcached's quiet reads. RESP3's pushes may arrive anywhere. */

/* ---- an answer to the oldest request ---- */

/* Examines a complete reply that was gathered. Returns the request's status. */
static unsigned inspect(struct connection *c, const struct pending_request *p, unsigned status)
{
	struct load_thread *t = c->thread;
	const struct workload *w = t->plan->workload;
	int64_t wrong;

	if (w->operations[p->operation].cursor) {
		reply_buffer_take_cursor(c->reply, p->operation, p->key);
		return status;
	}
	if (status != FT_STATUS_OK)
		return status;
	if (p->step < STEPS_MAX && w->operations[p->operation].steps[p->step].least) {
		if (reply_buffer_number(c->reply) >= w->operations[p->operation].steps[p->step].least)
			return status;
		if (p->intended_ns >= t->plan->measure_ns)
			stats_error_word(t->stats, "NOREPLICAS", ft_now_ns());
		return FT_STATUS_ERROR_REPLY;
	}
	if (w->operations[p->operation].scan) {
		reply_buffer_take_keys(c->reply);
		return status;
	}
	wrong = reply_buffer_check_value(c->reply, w, p->key);
	if (wrong == -1)
		return status;
	if (!t->trouble.wrong.found)
		t->trouble.wrong = (struct wrong_byte){true, p->key, wrong};
	return FT_STATUS_WRONG;
}

/* The number of commands of the operation on this connection. */
static inline uint32_t steps_of(const struct connection *c, const struct operation *o)
{
	return o->scan ? 1 + (c->reply ? c->reply->captured : 0) : o->step_count;
}

/* Counts an error reply, and keeps the text of the first one of its kind. */
static void count_error_reply(struct connection *c, const char *word, uint64_t now_ns)
{
	struct load_thread *t = c->thread;
	struct error_word *e = stats_error_word(t->stats, word, now_ns);
	char text[ERROR_TEXT];

	if (*e->text)
		return;
	protocol_of(t->plan->workload->protocol)->error_text(&c->scan, text, sizeof(text));
	error_word_set_text(e, text);
}

/* Handles an error reply. True: the request was redirected to another server and is outstanding. */
static bool take_error(struct connection *c, const struct pending_request *p, const char *word,
		       uint64_t now_ns, uint64_t bytes)
{
	struct load_thread *t = c->thread;

	if (t->model->redirect && t->model->redirect(c, p, now_ns)) {
		count_bytes(t, p->operation, bytes);
		if (c->reply)
			reply_buffer_reset(c->reply);
		ring_drop(c);
		return true;
	}
	if (p->intended_ns >= t->plan->measure_ns)
		count_error_reply(c, word, now_ns);
	return false;
}

/* Whether equal requests may be recorded together: neither their keys nor their order among others matter. */
static inline bool records_together(const struct load_thread *t)
{
	return !t->plan->workload->growing && !t->plan->proxy_ring && !t->model->on_end;
}

/* A request ended without an error: adds it to `ended` if it equals those, else records those first. */
static inline void end_together(struct connection *c, const struct pending_request *p, uint64_t now_ns,
				unsigned status, uint64_t bytes, struct equal_requests *ended)
{
	struct ft_request *q = &ended->request;

	if (ended->count > 0 && p->intended_ns == q->intended_ns && p->start_ns == q->start_ns &&
	    p->operation == q->op && status == q->status) {
		ended->bytes += bytes;
		ended->count++;
		return;
	}
	if (ended->count > 0)
		record_equal(c->thread, ended);
	*ended = (struct equal_requests){ended_request(c->id, p, now_ns, status), bytes, 1};
}

/* The answer to the oldest request is complete: sends the next step of its operation, or ends it. */
static inline void take_answer(struct connection *c, uint64_t now_ns, uint64_t bytes, bool together,
			       struct equal_requests *ended)
{
	struct load_thread *t = c->thread;
	const struct workload *w = t->plan->workload;
	struct pending_request *p = &c->pending[c->first], old;
	const struct operation *o = &w->operations[p->operation];
	uint32_t step = p->step < STEPS_MAX ? p->step : STEPS_MAX - 1u;
	const char *word = NULL;
	unsigned status;

	status = reply_status(w->protocol, &c->scan, &o->steps[step].expected, &word);
	bytes += o->steps[step].length;
	if (__builtin_expect(word != NULL, 0) && take_error(c, p, word, now_ns, bytes))
		return;
	if (__builtin_expect(c->reply != NULL, 0) && reply_buffer_needed(w, o, p->step))
		status = inspect(c, p, status);
	if (__builtin_expect(o->step_count > 1, 0) && o->internal) {
		t->model->on_own_answer(c, status);
		return;
	}
	if (__builtin_expect(o->step_count > 1, 0) && !status_is_error(status) &&
	    p->step + 1u < steps_of(c, o)) {
		old = *p;
		old.step++;
		ring_drop(c);
		count_bytes(t, old.operation, bytes);
		t->model->step(c, &old);
		return;
	}
	if (__builtin_expect(now_ns > p->start_ns + SLOW_REQUEST_NS, 0))
		request_was_slow(c, now_ns);
	if (together && !status_is_error(status))
		end_together(c, p, now_ns, status, bytes, ended);
	else
		record_request(t, c->id, p, now_ns, status, bytes);
	if (__builtin_expect(t->model->on_end != NULL, 0))
		t->model->on_end(c, p, now_ns, status);
	if (__builtin_expect(c->reply != NULL, 0))
		reply_buffer_reset(c->reply);
	ring_drop(c);
	t->in_flight--;
}

/* ---- bytes that may not be an answer ---- */

/* An answer to a set-up command of a reconnected connection. */
static bool take_greeting(struct connection *c)
{
	enum protocol_id protocol = c->thread->plan->workload->protocol;
	bool names_us = c->greetings == 1 && c->group->endpoint->named; /* refusing that is harmless */

	if (!protocol_of(protocol)->accepted(&c->scan) && !names_us) {
		connection_fail(c, FT_STATUS_REFUSED,
				"the server refused the login of a reopened connection");
		return false;
	}
	c->greetings--;
	return true;
}

/* An answer, complete or not, that may not belong to the oldest request. 1: it does not, 0: it does, -1: the
 * connection is gone. */
static int irregular_answer(struct connection *c, bool complete, uint64_t now_ns)
{
	if (c->greetings)
		return !complete || take_greeting(c) ? 1 : -1;
	if (c->batch_ends)
		return !complete || meta_answer(c, now_ns) != META_LOST ? 1 : -1;
	if (c->meta) {
		switch (complete ? meta_answer(c, now_ns) : META_ANSWERS_OLDEST) {
		case META_LOST:
			return -1;
		case META_ANSWERS_OLDEST:
			return 0;
		case META_ANSWERS_NONE:
			if (c->reply)
				reply_buffer_reset(c->reply);
			return 1;
		}
	}
	if (c->pending[c->first].operation != NO_OPERATION)
		return 0;
	if (!complete)
		return 1;
	/* The answer to ASKING is ignored: the next answer shows whether it worked. */
	ring_drop(c);
	c->asks--;
	return 1;
}

/* Handles bytes that do not answer the oldest request: a push, or an invalid reply. */
static bool take_push(struct connection *c, int complete, uint64_t now_ns)
{
	struct load_thread *t = c->thread;

	if (complete < 0 || !t->plan->options->resp3) {
		connection_fail(c, FT_STATUS_WRONG, "the server sent an invalid reply for this protocol");
		return false;
	}
	if (now_ns >= t->plan->measure_ns)
		t->stats->pushes++;
	if (c->reply)
		reply_buffer_reset(c->reply); /* parts of it were gathered as if it were the answer */
	return true;
}

/* Bytes while no answer is outstanding: pushes, or parts of one. */
static bool take_unasked(struct connection *c, const char **at, const char *end, uint64_t now_ns)
{
	const struct load_plan *plan = c->thread->plan;
	uint8_t kind;
	int complete;

	if (plan->options->resp3) {
		complete = reply_scan(plan->workload->protocol, &c->scan, at, end);
		kind = c->scan.resp.kind;
		if (complete == 2)
			return take_push(c, complete, now_ns);
		if (complete == 0 && (kind == RESP_PUSH || kind == RESP_ATTRIBUTE))
			return true;
	}
	connection_fail(c, FT_STATUS_WRONG, "the server sent an answer without a request");
	return false;
}

/* ---- all answers ---- */

static inline bool take_bytes(struct connection *c, const char *at, const char *end, uint64_t now_ns,
			      struct equal_requests *ended)
{
	struct load_thread *t = c->thread;
	const struct workload *w = t->plan->workload;
	bool together = records_together(t);

	while (at < end) {
		const char *from = at;
		const struct pending_request *p = &c->pending[c->first];
		bool gather;
		int complete, irregular;

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
		if (__builtin_expect(c->irregular != 0, 0)) {
			irregular = irregular_answer(c, complete != 0, now_ns);
			if (irregular < 0)
				return false;
			if (irregular > 0)
				continue;
		}
		gather = __builtin_expect(c->reply != NULL, 0) &&
			 (reply_buffer_needed(w, &w->operations[p->operation], p->step) || w->quiet);
		if (gather)
			reply_buffer_add(c->reply, from, at);
		if (complete == 0) {
			if (!t->plan->options->resp3 || c->scan.resp.kind != RESP_PUSH)
				count_bytes(t, p->operation, (uint64_t)(at - from));
			return true;
		}
		take_answer(c, now_ns, (uint64_t)(at - from), together, ended);
	}
	return true;
}

bool take_answers(struct connection *c, size_t size, uint64_t now_ns)
{
	struct load_thread *t = c->thread;
	struct arriving *a = &t->arriving;
	struct equal_requests ended;
	bool there;

	ended.count = 0;
	if (__builtin_expect(c->arrival_times, 0))
		a->at_ns = arrival_monotonic(&a->clock, a->stamp_ns, now_ns);
	there = take_bytes(c, t->read_buffer, t->read_buffer + size, now_ns, &ended);
	if (ended.count > 0)
		record_equal(t, &ended);
	a->at_ns = 0;
	return there;
}

/* Which request an answer to a memcached meta command belongs to. Requests carry their number on the
 * connection as opaque, so this is checked instead of assumed: an answer with an unexpected number ends the
 * connection, because nothing after it can be trusted. With --meta-quiet a read that misses is not answered.
 * Answers arrive in order, so an answer to a later request, or to the "mn" that ends each batch, shows that
 * the reads before it have missed. Their latency ends at that time. An error carries no opaque. Between quiet
 * reads it is counted for the oldest request. The error may belong to a later one and the oldest be a miss:
 * their number is right, but the server doesn't tell which is which. */

#define BATCH_END "mn\r\n"

static const char *const out_of_step =
    "the server did not answer the oldest request first: the opaque differs";

static inline struct pending_request *oldest(const struct connection *c)
{
	return &c->pending[c->first];
}

static inline const struct step *step_of(const struct connection *c, const struct pending_request *p)
{
	return &c->thread->plan->workload->operations[p->operation].steps[0];
}

size_t meta_end_batch(struct connection *c, uint32_t count, size_t at)
{
	struct load_thread *t = c->thread;
	struct pending_request *p = NULL;

	for (uint32_t k = 0; k < count; k++) {
		p = &c->pending[ring_index(c, c->in_flight - count + k)];
		p->ends_batch = false; /* it may have ended one on another connection */
	}
	if (!p || !step_of(c, p)->command.quiet)
		return at;
	t->requests.bytes.length = at;
	if (!bytes_reserve(&t->requests.bytes, sizeof(BATCH_END)))
		return 0;
	bytes_add(&t->requests.bytes, BATCH_END, sizeof(BATCH_END) - 1);
	t->requests.slots[count].from = TEMPLATE_NONE; /* the template at this position is overwritten */
	p->ends_batch = true;
	return t->requests.bytes.length;
}

/* The oldest request, a quiet read, has missed. */
static void end_as_miss(struct connection *c, uint64_t now_ns)
{
	const struct pending_request p = *oldest(c);

	record_end(c->thread, c->id, &p, now_ns, FT_STATUS_MISS, step_of(c, &p)->length);
	if (c->thread->model->on_end)
		c->thread->model->on_end(c, &p, now_ns, FT_STATUS_MISS);
	ring_drop(c);
	c->thread->in_flight--;
}

static enum meta_match lose(struct connection *c, const char *why)
{
	connection_fail(c, FT_STATUS_WRONG, why);
	return META_LOST;
}

/* The number of requests between the oldest and the one with this opaque. UINT32_MAX: none has it. */
static uint32_t distance(const struct connection *c, uint64_t opaque)
{
	uint32_t far;

	if (opaque > UINT32_MAX)
		return UINT32_MAX;
	far = (uint32_t)opaque - (c->taken - c->in_flight);
	return far < c->in_flight - c->to_send ? far : UINT32_MAX;
}

/* Answers that must carry the opaque if their request had one. */
static bool carries_opaque(uint8_t kind)
{
	return kind != MEMCACHED_META_ERROR && kind != MEMCACHED_META_MISS;
}

enum meta_match meta_answer(struct connection *c, uint64_t now_ns)
{
	const struct memcached_meta_scanner *s = &c->scan.meta;

	if (c->batch_ends) {
		c->batch_ends = false;
		return s->kind == MEMCACHED_META_NOOP
			   ? META_ANSWERS_NONE
			   : lose(c, "the server did not answer the end of a batch");
	}
	while (c->in_flight > c->to_send) {
		const struct pending_request *p = oldest(c);
		const struct command *command = &step_of(c, p)->command;
		bool last = p->ends_batch, numbered = command->numbered;
		uint32_t far = numbered && s->has_opaque ? distance(c, s->opaque) : 0;

		if (far == UINT32_MAX || (far > 0 && !command->quiet))
			return lose(c, out_of_step);
		if (numbered && !s->has_opaque && !command->quiet && carries_opaque(s->kind))
			return lose(c, out_of_step);
		/* It answers this request: by its number, by its position, or as an error. */
		if (!command->quiet || (s->has_opaque && far == 0) || s->kind == MEMCACHED_META_ERROR) {
			c->batch_ends = last;
			return META_ANSWERS_OLDEST;
		}
		end_as_miss(c, now_ns);
		if (last)
			return s->kind == MEMCACHED_META_NOOP
				   ? META_ANSWERS_NONE
				   : lose(c, "the server did not answer the end of a batch");
	}
	return lose(c, "the server sent an answer without a request");
}

/* The end of a request: the histogram, the log, and errors against the plan's limits. On the hot path. */

/* When their answers arrived: the last of the bytes that are being read. A failed request has none. */
static __attribute__((noinline)) void note_arrival(struct load_thread *t, struct ft_request *q,
						   uint32_t times)
{
	uint64_t at_ns = t->arriving.at_ns;

	if (q->status > FT_STATUS_ERROR_REPLY || at_ns < q->start_ns || at_ns > q->end_ns)
		return;
	q->arrival_ns = at_ns;
	if (q->intended_ns >= t->plan->measure_ns)
		stats_add_arrival(t->stats, at_ns - q->intended_ns, q->end_ns - at_ns, times);
}

/* Requests that are equal, `bytes` together. */
static inline void count_and_log(struct load_thread *t, struct ft_request *q, uint64_t bytes, uint32_t times)
{
	if (__builtin_expect(t->arriving.at_ns != 0, 0))
		note_arrival(t, q, times);
	if (__builtin_expect(q->intended_ns >= t->plan->measure_ns, 1)) {
		t->counting = true;
		stats_add(t->stats, q->op, q->status, q->end_ns - q->intended_ns, bytes, times);
	}
	if (q->end_ns - q->intended_ns >= t->plan->log_over_ns || status_is_error(q->status))
		log_append(&t->lane, q, times);
}

void record_equal(struct load_thread *t, struct equal_requests *e)
{
	count_and_log(t, &e->request, e->bytes, e->count);
}

void record_request(struct load_thread *t, uint32_t connection, const struct pending_request *p,
		    uint64_t end_ns, unsigned status, uint64_t bytes)
{
	const struct workload *w = t->plan->workload;
	struct ft_request q = ended_request(connection, p, end_ns, status);

	/* A request without a connection has no key. */
	if (__builtin_expect(t->plan->proxy_ring != NULL, 0) && connection != NO_CONNECTION)
		q.behind = proxy_ring_server(t->plan->proxy_ring, w, p->operation, p->key, &t->key_name);
	count_and_log(t, &q, bytes, 1);
	if (w->growing && w->operations[p->operation].inserts && connection != NO_CONNECTION)
		key_base_ack(w->base, p->key);
	if (__builtin_expect(status_is_error(status), 0)) {
		if (p->intended_ns >= t->plan->measure_ns)
			stats_note_error(t->stats, status,
					 status == FT_STATUS_UNSENT ? p->intended_ns : end_ns);
		count_error(t);
	}
}

/* The end of a thread's load. Code that removes an outstanding item checks whether it was the last. */

bool closed_more(struct load_thread *t, uint64_t now_ns)
{
	return t->left > 0 && now_ns < t->plan->end_ns && !t->stopping;
}

void fail_unsent(struct load_thread *t, uint64_t now_ns)
{
	if (t->model->fail_unsent)
		t->model->fail_unsent(t, now_ns);
}

bool loss_is_final(const struct load_thread *t)
{
	return t->alive == 0 && !t->stopping && !atomic_load(&t->plan->ending.stop);
}

void finish_if_done(struct load_thread *t, uint64_t now_ns)
{
	bool more = t->model->more(t, now_ns);

	if (t->finished || t->in_flight > 0 || (more && t->alive > 0))
		return;
	if (t->alive == 0)
		fail_unsent(t, now_ns);
	t->finished = true;
	if (t->base)
		event_base_loopbreak(t->base);
}

void count_error(struct load_thread *t)
{
	struct load_plan *plan = t->plan;
	struct ending *e = &plan->ending;
	uint64_t one = 1, errors = atomic_fetch_add(&e->errors, 1) + 1;

	if (plan->options->on_error != ON_ERROR_STOP &&
	    !(plan->options->max_errors && errors >= plan->options->max_errors))
		return;
	if (atomic_exchange(&e->stop, true))
		return;
	atomic_store(&e->gave_up, true);
	t->left = 0; /* no more requests from here on; other threads notice in a moment */
	/* The main thread wakes the other threads, and this one after it returns to its loop. */
	(void)!write(e->done_fd, &one, sizeof(one));
}

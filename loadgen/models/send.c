/* SPDX-License-Identifier: MIT */
/* The sending half of the hot path: takes requests and writes them, a connection's batch with one write().
 * Clocks: a request's start is read once per write(), just before it. In a closed loop a batch of up to
 * SHARED_CLOCK_REQUESTS uses the time that ended the previous answers. So its start is early by the time to
 * handle those: some 50 ns per request, counted as latency. */
#include <stdlib.h>

#include "loadgen/engine.h"
#include "loadgen/workload.h"
#include "recording/recording.h"

enum { SHARED_CLOCK_REQUESTS = 2 };

static char asking_bytes[] = "*1\r\n$6\r\nASKING\r\n";
static const struct step asking = {.bytes = asking_bytes, .length = sizeof(asking_bytes) - 1};

/* What a continued scan reads next. */
static void choose_captured(const struct connection *c, const struct pending_request *p,
			    struct request_values *v)
{
	const struct reply_buffer *i = c->reply;
	uint32_t k = p->step - 1u;

	if (i && i->cursors && p->step == 0) {
		v->captured = i->cursors[p->operation].text;
		v->captured_length = i->cursors[p->operation].length;
	} else if (i && p->step > 0 && k < i->captured) {
		v->captured = i->reply.at + i->captured_at[k];
		v->captured_length = i->captured_length[k];
	}
}

/* Requests are sent now; those that were due earlier are late. */
static inline void stamp_batch(struct connection *c, uint32_t from, uint64_t now_ns)
{
	struct load_thread *t = c->thread;

	for (uint32_t i = from; c->to_send > 0; c->to_send--) {
		struct pending_request *p = &c->pending[i];

		if (pending_set_sent(p, now_ns) && p->intended_ns >= t->plan->measure_ns &&
		    p->operation != NO_OPERATION) {
			stats_add_lateness(t->stats, now_ns - p->intended_ns);
			t->stats->sent++;
		}
		i = i + 1 < c->ring_size ? i + 1 : 0;
	}
}

void send_batch(struct connection *c, uint64_t now_ns)
{
	struct load_thread *t = c->thread;
	const struct workload *w = t->plan->workload;
	uint32_t count = c->to_send, from = ring_index(c, c->in_flight - count);
	uint32_t operation = 0, number = 0;
	const struct step *step = NULL;
	struct request_values v = {.opaque = c->taken - count};
	size_t at = 0, after;
	ssize_t n;

	if (__builtin_expect(c->backlog != NULL, 0))
		return;
	for (uint32_t k = 0, i = from; k < count; k++) {
		const struct pending_request *p = &c->pending[i];

		v.key = p->key;
		v.intended_ns = p->intended_ns;
		if (!step || p->operation != operation || (p->step | number)) {
			operation = p->operation;
			number = p->step < STEPS_MAX ? p->step : STEPS_MAX - 1u;
			step = __builtin_expect(operation == NO_OPERATION, 0)
				   ? &asking
				   : &w->operations[operation].steps[number];
			choose_captured(c, p, &v);
		}
		after = request_put(&t->requests, w, k, at, step, operation * STEPS_MAX + number, &v);
		if (after == 0) {
			connection_fail(c, FT_STATUS_RESET, "out of memory");
			return;
		}
		if (__builtin_expect(!step->bytes, 0))
			count_bytes(t, operation,
				    after - at); /* those of a template are counted with its answer */
		at = after;
		v.opaque++;
		i = i + 1 < c->ring_size ? i + 1 : 0;
	}
	if (__builtin_expect(w->quiet, 0)) {
		at = meta_end_batch(c, count, at);
		if (at == 0) {
			connection_fail(c, FT_STATUS_RESET, "out of memory");
			return;
		}
	}
	if (now_ns == 0 || count > SHARED_CLOCK_REQUESTS)
		now_ns = ft_now_ns();
	stamp_batch(c, from, now_ns);
	do {
		n = transport_write(c, t->requests.bytes.at, at);
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)at)
		return;
	if (n < 0 && errno != EAGAIN)
		connection_fail(c, FT_STATUS_RESET, transport_why(c, n));
	else
		t->model->on_backlog(c, t->requests.bytes.at + (n < 0 ? 0 : n), at - (size_t)(n < 0 ? 0 : n));
}

void send_step(struct connection *c, const struct pending_request *p)
{
	*ring_add(c) = *p;
}

void take_up(struct connection *c, uint64_t intended_ns)
{
	struct load_thread *t = c->thread;
	const struct load_plan *plan = t->plan;
	struct pending_request *p = ring_add(c);
	uint32_t operation = choose_operation(&plan->mix, &t->chooser);

	*p = (struct pending_request){
	    .intended_ns = intended_ns,
	    .key = choose_key(plan->workload, &plan->mix, &t->chooser, operation,
			      (uint32_t)(c - c->group->connections)),
	    .operation = (uint8_t)operation,
	};
	if (__builtin_expect(c->reply != NULL, 0) && c->reply->cursors && c->reply->cursors[operation].length)
		p->key = c->reply->cursors[operation].key;
	c->taken++;
	t->in_flight++;
}

/* Bytes that the kernel did not accept at once, and the event that fires when it accepts more. */

struct write_backlog {
	struct event writable;
	size_t done, length;
	char bytes[];
};

bool write_backlog_keep(struct connection *c, const char *bytes, size_t length)
{
	struct write_backlog *u = malloc(sizeof(*u) + length);

	if (!u)
		return false;
	u->done = 0;
	u->length = length;
	if (length)
		memcpy(u->bytes, bytes, length);
	c->backlog = u;
	event_assign(&u->writable, c->thread->base, c->fd, EV_WRITE | EV_PERSIST,
		     c->thread->model->on_writable, c);
	event_add(&u->writable, NULL);
	return true;
}

void write_backlog_watch(struct connection *c, bool watch)
{
	if (watch)
		event_add(&c->backlog->writable, NULL);
	else
		event_del(&c->backlog->writable);
}

int write_backlog_write(struct connection *c)
{
	struct write_backlog *u = c->backlog;
	ssize_t n = u->done < u->length ? transport_write(c, u->bytes + u->done, u->length - u->done) : 0;

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -1;
	if (n > 0)
		u->done += (size_t)n;
	if (u->done < u->length)
		return 0;
	write_backlog_drop(c);
	return 1;
}

void write_backlog_drop(struct connection *c)
{
	if (!c->backlog)
		return;
	event_del(&c->backlog->writable);
	free(c->backlog);
	c->backlog = NULL;
}

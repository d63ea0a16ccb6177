/* SPDX-License-Identifier: MIT */
/* The hot path: a connection's reads and writes, and which requests go out when. What answers mean is in
 * answers.c.
 *
 * Per wake-up of a connection there is one read() and one write(), and no epoll_ctl(): the descriptor
 * stays registered, edge-triggered. An edge saves the kernel the second look at each descriptor that
 * level triggering costs, and is safe here: a read that returns less than it could has emptied the socket,
 * whatever comes later is a new edge, and an end of stream that came before the read shows as EV_CLOSED
 * in the same event (then we read until it's seen).
 *
 * Clocks. An answer's end is read once per read(): all answers that one read() returned end then. A
 * request's start is read once per write(), just before it; in a closed loop a batch of up to
 * SHARED_CLOCK_REQUESTS uses the reading that ended the answers before it, so its start is early by what
 * handling those took: some 50 ns a request, counted as latency.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "inspection.h"
#include "recording/recording.h"
#include "replay_send.h"
#include "thread.h"
#include "transport.h"

enum { SHARED_CLOCK_REQUESTS = 2, READS_AT_ONCE = 64 };

/* ---- who has room ---- */

void leave_room(struct connection *c)
{
	struct group *g = c->group;

	if (c->room == ROOM_IDLE)
		TAILQ_REMOVE(&g->idle, c, with_room);
	else if (c->room == ROOM_PARTIAL)
		TAILQ_REMOVE(&g->partial, c, with_room);
	else if (c->room == ROOM_REPLAY)
		replay_leave(c);
	c->room = ROOM_NONE;
}

/* Whether the connection may send as soon as there is room in its pipeline. */
static inline bool may_send(const struct connection *c)
{
	const struct load_plan *plan = c->thread->plan;

	return c->fd >= 0 && !c->unsent && !c->connecting && !c->parked &&
	       (!plan->reconnect_after || c->taken < plan->reconnect_after);
}

/* At the end of its list: the connection idle longest is first. */
void settle_room(struct connection *c)
{
	struct group *g = c->group;

	if (__builtin_expect(c->thread->replay != NULL, 0)) {
		replay_settle(c);
		return;
	}
	leave_room(c);
	if (!may_send(c) || c->in_flight >= c->thread->plan->pipeline)
		return;
	if (c->in_flight == 0) {
		TAILQ_INSERT_TAIL(&g->idle, c, with_room);
		c->room = ROOM_IDLE;
	} else {
		TAILQ_INSERT_TAIL(&g->partial, c, with_room);
		c->room = ROOM_PARTIAL;
	}
}

/* ---- the end ---- */

void check_finished(struct load_thread *t, uint64_t now_ns)
{
	bool more = t->replay		 ? replay_more(t, now_ns)
		    : t->plan->open_loop ? t->pacing.due_ns != PACING_NEVER
					 : t->left > 0 && now_ns < t->plan->end_ns && !t->stopping;

	if (t->finished || t->in_flight > 0 || (more && t->alive > 0))
		return;
	if (t->alive == 0)
		fail_unsent(t, now_ns);
	t->finished = true;
	if (t->base)
		event_base_loopbreak(t->base);
}

void fail_unsent(struct load_thread *t, uint64_t now_ns)
{
	if (!t->plan->open_loop)
		return;
	if (t->replay) {
		replay_fail_unsent(t, now_ns);
		return;
	}
	pacing_stop(&t->pacing, now_ns);
	t->lane.patient = true; /* there may be millions, and nothing is measured any more */
	while (t->pacing.due_ns != PACING_NEVER) {
		struct pending p = {
		    .intended_ns = t->pacing.due_ns,
		    .start_ns = now_ns,
		    .operation = (uint8_t)choose_operation(&t->plan->mix, &t->chooser),
		};
		record_end(t, NO_CONNECTION, &p, now_ns, FT_STATUS_UNSENT, 0);
		pacing_take(&t->pacing);
	}
}

/* ---- requests out ---- */

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;
	struct unsent *u = c->unsent;
	ssize_t n;

	(void)fd;
	(void)what;
	if (c->connecting && !connection_arrived(c))
		return;
	n = u->done < u->length ? transport_write(c, u->bytes + u->done, u->length - u->done) : 0;
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		connection_fail(c, FT_STATUS_RESET, transport_why(c, n));
		return;
	}
	if (n > 0)
		u->done += (size_t)n;
	if (u->done < u->length)
		return;
	event_del(&u->writable);
	free(u);
	c->unsent = NULL;
	if (c->to_send > 0) { /* had to wait for that */
		send_batch(c, 0);
		if (c->fd < 0)
			return;
	}
	if (c->thread->routing) {
		routed_room(c, ft_now_ns());
	} else if (c->thread->plan->open_loop) {
		settle_room(c);
		open_loop_pump(c->thread, ft_now_ns());
	} else {
		connection_refill(c, ft_now_ns());
	}
	/* A read over TLS may have waited for room to write. */
	if (c->tls && c->fd >= 0 && !c->connecting)
		connection_readable(c->fd, EV_READ, c);
}

void keep_unsent(struct connection *c, const char *bytes, size_t length)
{
	struct unsent *u = malloc(sizeof(*u) + length);

	if (!u) {
		connection_fail(c, FT_STATUS_RESET, "out of memory");
		return;
	}
	u->done = 0;
	u->length = length;
	if (length)
		memcpy(u->bytes, bytes, length);
	c->unsent = u;
	event_assign(&u->writable, c->thread->base, c->fd, EV_WRITE | EV_PERSIST, on_writable, c);
	event_add(&u->writable, NULL);
	if (c->thread->plan->open_loop || c->thread->routing)
		settle_room(c);
}

/* Without an event loop: writes the rest now, reading answers meanwhile so that neither side waits for ever.
 */
static void push_unsent(struct connection *c, const char *bytes, size_t length)
{
	struct load_thread *t = c->thread;
	struct pollfd p = {.fd = c->fd, .events = POLLIN | POLLOUT};
	uint64_t since = ft_now_ns();

	while (length > 0 && c->fd >= 0) {
		ssize_t n;

		if (poll(&p, 1, 100) <= 0) {
			if (!blocking_patience(c, ft_now_ns(), since))
				return;
			continue;
		}
		since = ft_now_ns();
		if (p.revents & POLLOUT) {
			n = transport_write(c, bytes, length);
			bytes += n > 0 ? n : 0;
			length -= (size_t)(n > 0 ? n : 0);
		}
		if (p.revents & (POLLIN | POLLHUP | POLLERR)) {
			n = transport_read(c, t->read_buffer, READ_BYTES);
			if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
				connection_fail(c, FT_STATUS_RESET, transport_why(c, n));
			else if (n > 0)
				take_answers(c, t->read_buffer, t->read_buffer + n, ft_now_ns());
		}
	}
}

/* What a continued scan reads next. */
static void choose_captured(const struct connection *c, const struct pending *p, struct request_values *v)
{
	const struct inspection *i = c->inspection;
	uint32_t k = p->step - 1u;

	if (i && p->step > 0 && k < i->captured) {
		v->captured = i->reply.at + i->captured_at[k];
		v->captured_length = i->captured_length[k];
	}
}

void send_batch(struct connection *c, uint64_t now_ns)
{
	struct load_thread *t = c->thread;
	const struct workload *w = t->plan->workload;
	uint32_t count = c->to_send, from = ring_index(c, c->in_flight - count);
	uint32_t operation = 0, number = 0;
	static const struct step asking = {.bytes = (char *)routed_asking, .length = ROUTED_ASKING_BYTES};
	const struct step *step = NULL;
	struct request_values v = {.opaque = c->taken - count};
	size_t at = 0, after;
	ssize_t n;

	if (__builtin_expect(c->unsent != NULL, 0))
		return;
	for (uint32_t k = 0, i = from; k < count; k++) {
		const struct pending *p = &c->pending[i];

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
			count_bytes(t, operation, after - at); /* a template's are counted with its answer */
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
	for (uint32_t k = 0, i = from; k < count; k++) {
		struct pending *p = &c->pending[i];
		if (__builtin_expect(p->start_ns == 0, 1)) {
			p->start_ns = now_ns;
			if (!p->intended_ns) {
				p->intended_ns = now_ns;
			} else if (p->intended_ns >= t->plan->measure_ns && p->operation != NO_OPERATION) {
				stats_sent_late(t->stats, now_ns - p->intended_ns);
				t->stats->sent++;
			}
		}
		i = i + 1 < c->ring_size ? i + 1 : 0;
	}
	c->to_send = 0;
	do {
		n = transport_write(c, t->requests.bytes.at, at);
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)at)
		return;
	if (n < 0 && errno != EAGAIN)
		connection_fail(c, FT_STATUS_RESET, transport_why(c, n));
	else if (t->plan->blocking)
		push_unsent(c, t->requests.bytes.at + (n < 0 ? 0 : n), at - (size_t)(n < 0 ? 0 : n));
	else
		keep_unsent(c, t->requests.bytes.at + (n < 0 ? 0 : n), at - (size_t)(n < 0 ? 0 : n));
}

void take_up(struct connection *c, uint64_t intended_ns)
{
	struct load_thread *t = c->thread;
	const struct load_plan *plan = t->plan;
	struct pending *p = &c->pending[ring_index(c, c->in_flight)];
	uint32_t operation = choose_operation(&plan->mix, &t->chooser);

	*p = (struct pending){
	    .intended_ns = intended_ns,
	    .key = choose_key(plan->workload, &plan->mix, &t->chooser, operation,
			      (uint32_t)(c - c->group->connections)),
	    .operation = (uint8_t)operation,
	};
	c->in_flight++;
	c->to_send++;
	c->taken++;
	t->in_flight++;
}

void connection_refill(struct connection *c, uint64_t now_ns)
{
	struct load_thread *t = c->thread;
	const struct load_plan *plan = t->plan;

	while (may_send(c)) {
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
	check_finished(t, now_ns ? now_ns : ft_now_ns());
}

void arm_due(struct load_thread *t)
{
	uint64_t due = t->pacing.due_ns;
	struct itimerspec when = {
	    .it_value = {.tv_sec = (time_t)(due / 1000000000), .tv_nsec = (long)(due % 1000000000)}};

	if (due == PACING_NEVER || due == t->armed_ns || (!t->routing && !first_with_room(t->groups[0])))
		return;
	timerfd_settime(t->due_fd, TFD_TIMER_ABSTIME, &when, NULL);
	t->armed_ns = due;
}

void open_loop_pump(struct load_thread *t, uint64_t now_ns)
{
	const struct group *g = t->groups[0];
	struct connection *c;

	if (__builtin_expect(t->replay != NULL, 0)) {
		replay_pump(t, now_ns);
		return;
	}
	while (t->pacing.due_ns <= now_ns && first_with_room(g)) {
		struct connection *batch = NULL, **last = &batch;

		/* Hand out all that is due, then write once per connection. */
		while (t->pacing.due_ns <= now_ns && (c = first_with_room(g))) {
			if (c->to_send == 0) {
				c->next_to_send = NULL;
				*last = c;
				last = &c->next_to_send;
			}
			take_up(c, t->pacing.due_ns);
			pacing_take(&t->pacing);
			settle_room(c);
		}
		while ((c = batch)) {
			batch = c->next_to_send;
			send_batch(c, 0);
		}
		now_ns = ft_now_ns();
	}
	arm_due(t);
	check_finished(t, now_ns);
}

/* ---- answers in ---- */

/* After answers, in a closed loop: the next requests, at once or after a think time. */
static void go_on(struct connection *c, uint64_t now_ns)
{
	const struct load_plan *plan = c->thread->plan;

	if (plan->think_ns) {
		if (c->in_flight == 0 && !c->waiting)
			connection_think(c, now_ns);
		return;
	}
	if (plan->reconnect_after && c->taken >= plan->reconnect_after && c->in_flight == 0 &&
	    !c->thread->stopping && c->thread->left > 0) {
		connection_renew(c, now_ns);
		return;
	}
	if (c->ring_size - c->in_flight >= plan->batch || c->in_flight == 0)
		connection_refill(c, now_ns);
}

void connection_readable(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;
	struct load_thread *t = c->thread;
	uint64_t now = 0;
	uint32_t rounds = 0;
	ssize_t n;

	if (__builtin_expect(c->connecting, 0)) {
		if (c->tls)
			on_writable(fd, what, c); /* the handshake goes on */
		return;				  /* becoming writable says how that went */
	}
	if (__builtin_expect(c->tls != NULL, 0))
		tls_wake(c->tls, what & EV_CLOSED);
	do {
		n = transport_read(c, t->read_buffer, READ_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			connection_fail(c, FT_STATUS_RESET, transport_why(c, n));
			return;
		}
		now = ft_now_ns();
		if (!take_answers(c, t->read_buffer, t->read_buffer + n, now))
			return;
		/* A stream without end must not keep the loop from its timers, nor from other connections: an
		 * event that is added anew fires again if there is more. */
		if (__builtin_expect(++rounds == READS_AT_ONCE, 0)) {
			event_del(&c->readable);
			event_add(&c->readable, NULL);
			if (!c->tls)
				break;
			tls_hold(c->tls); /* no event would tell of what TLS has taken off the socket */
		}
	} while (n < 0 || n == READ_BYTES || (what & EV_CLOSED) || transport_unread(c));
	if (__builtin_expect(c->tls != NULL, 0) && tls_wants_write(c->tls) && !c->unsent)
		keep_unsent(c, NULL, 0);
	if (now == 0)
		return;
	t->stats->last_end_ns = now;
	if (__builtin_expect(t->routing != NULL, 0)) {
		routed_room(c, now);
		return;
	}
	if (__builtin_expect(c->to_send > 0, 0)) { /* further steps */
		send_batch(c, 0);
		if (c->fd < 0)
			return;
	}
	if (t->plan->open_loop) {
		if (__builtin_expect(t->plan->reconnect_after && c->in_flight == 0, 0) &&
		    c->taken >= t->plan->reconnect_after)
			connection_renew(c, now);
		else
			settle_room(c);
		open_loop_pump(t, now);
	} else {
		go_on(c, now);
	}
}

/* SPDX-License-Identifier: MIT */
/* Connections come and go: opening, breaking, opening again, time-outs, and profiles that let more or fewer
 * of them send. Nothing of this is on the path of a request on a healthy connection.
 *
 * A connection that is opened again is connected without blocking: other connections' requests are not to
 * wait for it. Its set-up commands (AUTH, SELECT) are written ahead of the first request and their answers
 * are taken off before the first request's.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspection.h"
#include "profile.h"
#include "recording/recording.h"
#include "thread.h"
#include "transport.h"

/* Of a TLS handshake, as at set-up. */
#define HANDSHAKE_NS 5000000000u

enum { BACKOFF_MAX_MS = 5000, PROFILE_TICK_NS = 10000000 };

static bool any_inspection(const struct load_plan *plan)
{
	const struct workload *w = plan->workload;

	for (uint32_t i = 0; i < plan->mix.count; i++)
		if (inspection_wanted(w, &w->operations[plan->mix.operations[i]], 0) ||
		    inspection_wanted(w, &w->operations[plan->mix.operations[i]], 1))
			return true;
	return false;
}

static int watch_socket(struct connection *c)
{
	if (!c->thread->base)
		return 0;
	if (event_assign(&c->readable, c->thread->base, c->fd, EV_READ | EV_CLOSED | EV_ET | EV_PERSIST,
			 connection_readable, c) ||
	    event_add(&c->readable, NULL))
		return -ENOMEM;
	return 0;
}

int connection_init(struct connection *c, struct load_thread *t, struct group *g, uint32_t id,
		    struct pending *ring)
{
	c->thread = t;
	c->meta = t->plan->workload->protocol == PROTOCOL_MEMCACHE_META;
	c->group = g;
	c->id = id;
	c->pending = ring;
	c->ring_size = RING_SIZE(t->plan);
	c->opened_ns = ft_now_ns();
	c->local_port = c->fd < 0 ? 0 : socket_local_port(c->fd);
	if (any_inspection(t->plan)) {
		c->inspection = inspection_new();
		if (!c->inspection)
			return -ENOMEM;
	}
	if ((t->plan->open_loop && !t->plan->blocking) || t->routing)
		settle_room(c);
	return c->fd < 0 ? 0 : watch_socket(c);
}

void count_error(struct load_thread *t)
{
	struct load_plan *plan = t->plan;
	uint64_t one = 1, errors = atomic_fetch_add(&plan->errors, 1) + 1;

	if (plan->on_error != ON_ERROR_STOP && !(plan->max_errors && errors >= plan->max_errors))
		return;
	if (atomic_exchange(&plan->stop, true))
		return;
	atomic_store(&plan->gave_up, true);
	t->left = 0; /* not one request more from here; other threads hear of it in a moment */
	/* The main thread wakes the others, and this one once it's back in its loop. */
	(void)!write(plan->done_fd, &one, sizeof(one));
}

/* ---- opening again ---- */

static void come_back(struct connection *c, uint64_t when_ns, void (*act)(void *, uint64_t))
{
	c->waiting = true;
	timers_add(&c->thread->timers, when_ns, act, c);
}

static void reopen(void *who, uint64_t now_ns);

static void try_later(struct connection *c, uint64_t now_ns)
{
	c->backoff_ms = c->backoff_ms ? c->backoff_ms * 2 : c->thread->plan->backoff_ms;
	if (c->backoff_ms > BACKOFF_MAX_MS)
		c->backoff_ms = BACKOFF_MAX_MS;
	come_back(c, now_ns + (uint64_t)c->backoff_ms * 1000000, reopen);
}

/* A connect() that failed: counted, and tried again or given up. */
static void refused(struct connection *c, int error, uint64_t now_ns)
{
	struct load_thread *t = c->thread;

	stats_note_error(t->stats, FT_STATUS_REFUSED, now_ns);
	t->stats->connects_failed++;
	t->broken = strerror(-error);
	count_error(t);
	c->fd = -1;
	if (t->routing)
		routed_trouble(c, now_ns);
	if (t->stopping || t->plan->on_error == ON_ERROR_STOP) {
		t->alive--;
		t->lost++;
		check_finished(t, now_ns);
		return;
	}
	try_later(c, now_ns);
}

/* A connection is there: the first requests. */
static void begin_sending(struct connection *c, uint64_t now_ns)
{
	c->local_port = socket_local_port(c->fd);
	if (c->thread->routing)
		routed_arrived(c);
	if (c->unsent)
		return; /* the greeting first; on_writable goes on */
	if (c->thread->routing) {
		routed_room(c, now_ns);
	} else if (c->thread->plan->open_loop) {
		settle_room(c);
		open_loop_pump(c->thread, now_ns);
	} else {
		connection_refill(c, now_ns);
	}
}

static void reopen(void *who, uint64_t now_ns)
{
	struct connection *c = who;
	struct load_thread *t = c->thread;
	const struct endpoint *e = c->group->endpoint;
	bool pending;
	int fd;

	c->waiting = false;
	if (t->stopping || c->fd >= 0)
		return;
	fd = socket_begin(&e->socket, c->id, &pending);
	if (fd < 0) {
		refused(c, fd, now_ns);
		return;
	}
	c->fd = fd;
	c->closed_ns = 0;
	c->taken = c->first = 0;
	c->batch_ends = false;
	memset(&c->scan, 0, sizeof(c->scan));
	if (c->inspection)
		inspection_reset(c->inspection);
	c->greetings = e->greetings;
	c->connecting = pending || e->tls_name;
	c->begun_ns = now_ns;
	if (watch_socket(c)) {
		connection_fail(c, FT_STATUS_RESET, "out of memory");
		return;
	}
	if (c->connecting || e->greeting_bytes)
		keep_unsent(c, e->greeting, e->greeting_bytes);
	if (!c->connecting)
		begin_sending(c, now_ns);
}

void connection_begin(struct connection *c, uint64_t now_ns)
{
	reopen(c, now_ns);
}

void close_socket(struct connection *c)
{
	tls_session_free(c->tls);
	c->tls = NULL;
	close(c->fd);
}

static const char too_long[] = "the server did not finish the TLS handshake within 5 s";

/* Of a session that is about to be freed. */
static const char *session_why(struct connection *c)
{
	struct load_thread *t = c->thread;

	snprintf(t->broken_text, sizeof(t->broken_text), "the server %s", tls_why(c->tls));
	return t->broken_text;
}

/* A step of the TLS handshake, where there is to be one: as tls_handshake. */
static int shake_hands(struct connection *c)
{
	const char *name = c->group->endpoint->tls_name;

	if (!name)
		return 0;
	if (!c->tls)
		c->tls = tls_session_new(name, c->fd);
	return c->tls ? tls_handshake(c->tls) : -ENOMEM;
}

/* A connection that was begun came to nothing. */
static void not_arrived(struct connection *c, int error, const char *why)
{
	event_del(&c->readable);
	event_del(&c->unsent->writable);
	free(c->unsent);
	c->unsent = NULL;
	c->connecting = false;
	close_socket(c);
	refused(c, error, ft_now_ns());
	if (why)
		c->thread->broken = why;
}

bool connection_arrived(struct connection *c)
{
	int rc = c->tls ? 0 : socket_result(c->fd);

	if (rc == 0)
		rc = shake_hands(c);
	if (rc == 0) {
		c->connecting = false;
		event_add(&c->unsent->writable, NULL);
		c->local_port = socket_local_port(c->fd);
		if (c->thread->routing)
			routed_arrived(c);
		return true;
	}
	if (rc == -EAGAIN) {
		/* Writable it is nearly always: only to be watched for when that is what we wait for. */
		if (tls_wants_write(c->tls))
			event_add(&c->unsent->writable, NULL);
		else
			event_del(&c->unsent->writable);
		return false;
	}
	not_arrived(c, rc, rc == -EPROTO ? session_why(c) : NULL);
	return false;
}

bool connection_secure(struct connection *c, const char **why)
{
	uint64_t give_up_ns = ft_now_ns() + HANDSHAKE_NS;
	int rc = 0;

	*why = NULL;
	if (!c->group->endpoint->tls_name)
		return true;
	do {
		struct pollfd p = {.fd = c->fd,
				   .events = c->tls && tls_wants_write(c->tls) ? POLLOUT : POLLIN};

		if (rc == -EAGAIN && poll(&p, 1, 100) == 0 && atomic_load(&c->thread->plan->abandon))
			break;
		rc = shake_hands(c);
	} while (rc == -EAGAIN && ft_now_ns() < give_up_ns);
	if (rc == 0)
		return true;
	*why = rc == -EPROTO ? session_why(c) : rc == -EAGAIN ? too_long : strerror(-rc);
	close_socket(c);
	c->fd = -1;
	return false;
}

void expire_handshakes(struct load_thread *t, uint64_t now_ns)
{
	for (uint32_t i = 0; i < t->group_count * t->connection_count && !t->finished; i++) {
		struct connection *c = thread_connection(t, i);

		if (c->fd >= 0 && c->connecting && c->tls && now_ns - c->begun_ns > HANDSHAKE_NS)
			not_arrived(c, -ETIMEDOUT, too_long);
	}
}

/* Closes the socket; nothing may be in flight. */
static void let_go(struct connection *c, uint64_t now_ns)
{
	leave_room(c);
	if (c->thread->base)
		event_del(&c->readable);
	if (c->unsent) {
		event_del(&c->unsent->writable);
		free(c->unsent);
		c->unsent = NULL;
	}
	close_socket(c);
	c->fd = -1;
	c->connecting = false;
	c->greetings = 0;
	c->closed_ns = now_ns;
}

void connection_renew(struct connection *c, uint64_t now_ns)
{
	const struct endpoint *e = c->group->endpoint;

	let_go(c, now_ns);
	c->backoff_ms = 0;
	if (c->thread->base) {
		reopen(c, now_ns);
		return;
	}
	/* Without an event loop there is nobody else to hold up. */
	const char *why = NULL;
	int error;

	c->fd = socket_open(&e->socket, c->id, 5);
	error = c->fd < 0 ? -c->fd : 0;
	if (c->fd >= 0)
		connection_secure(c, &why);
	c->taken = c->first = 0;
	c->batch_ends = false;
	memset(&c->scan, 0, sizeof(c->scan));
	if (c->fd >= 0) {
		c->greetings = e->greetings;
		c->closed_ns = 0;
		(void)!transport_write(c, e->greeting, e->greeting_bytes);
		return;
	}
	stats_note_error(c->thread->stats, FT_STATUS_REFUSED, now_ns);
	c->thread->stats->connects_failed++;
	c->thread->broken = why ? why : strerror(error);
	c->fd = -1;
	c->waiting = true; /* blocking.c tries again, whatever the policy for broken connections */
	count_error(c->thread);
}

void connection_fail(struct connection *c, unsigned status, const char *why)
{
	struct load_thread *t = c->thread;
	uint64_t now = ft_now_ns();
	uint32_t in_flight = c->in_flight, unwritten = c->to_send, first = c->first;
	/* With several servers the drain is time to get through to another one. */
	bool again =
	    t->plan->on_error == ON_ERROR_RECONNECT && !t->stopping && (now < t->plan->end_ns || t->routing);

	if (c->fd < 0)
		return;
	c->in_flight = c->to_send = c->asks = 0;
	let_go(c, now);
	/* A connection that was accepted and never answered anything is no better than a refused one. */
	if (c->taken > in_flight)
		c->backoff_ms = 0;
	if (t->routing)
		routed_lost(c, first, in_flight, unwritten, status, now);
	else
		t->in_flight -= in_flight;
	for (uint32_t i = 0; i < in_flight && !t->routing; i++) {
		struct pending *p = &c->pending[(first + i) % c->ring_size];
		if (i >= in_flight - unwritten && !p->start_ns) {
			p->start_ns = now;
			if (!p->intended_ns)
				p->intended_ns = now;
		}
		record_end(t, c->id, p, now, status, 0);
	}
	if (in_flight == 0) {
		stats_note_error(t->stats, status, now);
		if (!t->stopping)
			count_error(t); /* else each request has been counted */
	}
	t->stats->broken++;
	if (status != FT_STATUS_TIMEOUT || t->plan->timeout_ns)
		t->broken = why;
	if (again && t->base) {
		if (!c->waiting) /* else it thinks, and think_over sees to it: a connection has one timer */
			try_later(c, now);
		if (t->routing)
			routed_settle(t, now);
		return;
	}
	if (again)
		return; /* blocking.c sees to it */
	t->alive--;
	if (status != FT_STATUS_TIMEOUT || !t->stopping)
		t->lost++;
	if (t->routing)
		routed_settle(t,
			      now); /* answers before this one may have put requests on other connections */
	check_finished(t, now);
}

/* ---- think time ---- */

static void think_over(void *who, uint64_t now_ns)
{
	struct connection *c = who;
	const struct load_plan *plan = c->thread->plan;

	c->waiting = false;
	if (c->fd >= 0 && plan->reconnect_after && c->taken >= plan->reconnect_after && c->thread->left > 0 &&
	    !c->thread->stopping)
		connection_renew(c, now_ns);
	else if (c->fd >= 0)
		connection_refill(c, now_ns);
	else if (plan->on_error == ON_ERROR_RECONNECT && !c->thread->stopping)
		try_later(c, now_ns);
}

void connection_think(struct connection *c, uint64_t now_ns)
{
	if (c->thread->left > 0 && now_ns < c->thread->plan->end_ns)
		come_back(c, now_ns + c->thread->plan->think_ns, think_over);
	else
		check_finished(c->thread, now_ns);
}

/* ---- time-outs and profiles ---- */

static void look_for_timeouts(void *who, uint64_t now_ns)
{
	struct load_thread *t = who;
	uint64_t limit = t->plan->timeout_ns;

	for (uint32_t i = 0; i < t->group_count * t->connection_count && !t->finished; i++) {
		struct connection *c = thread_connection(t, i);
		/* What still waits to be written has no start yet. */
		if (c->fd >= 0 && c->in_flight > c->to_send &&
		    c->pending[c->first].start_ns + limit <= now_ns)
			connection_fail(c, FT_STATUS_TIMEOUT, "no answer within --timeout");
	}
	if (!t->finished)
		timers_add(&t->timers, now_ns + (limit / 10 > 1000000 ? limit / 10 : 1000000),
			   look_for_timeouts, t);
}

/* As many connections send as the profile says for now. */
static void follow_profile(void *who, uint64_t now_ns)
{
	struct load_thread *t = who;
	const struct load_plan *plan = t->plan;
	double all = profile_value(plan->connections_over_time, (double)(now_ns - plan->start_ns) * 1e-9);
	uint32_t wanted = all <= 0 ? 0 : (uint32_t)(all * t->connection_count / plan->connections + 0.5);

	if (wanted > t->connection_count)
		wanted = t->connection_count;
	t->active = wanted;
	for (uint32_t i = 0; i < t->connection_count && !t->finished; i++) {
		struct connection *c = thread_connection(t, i);
		bool park = i >= wanted;

		if (c->parked == park)
			continue;
		c->parked = park;
		if (plan->open_loop)
			settle_room(c);
		else if (!park && c->fd >= 0 && c->in_flight == 0 && !c->waiting)
			connection_refill(c, 0);
	}
	if (plan->open_loop && !t->finished)
		open_loop_pump(t, now_ns);
	if (!t->finished)
		timers_add(&t->timers, now_ns + PROFILE_TICK_NS, follow_profile, t);
}

void watch_connections(struct load_thread *t)
{
	uint64_t now = ft_now_ns();

	if (t->plan->timeout_ns)
		look_for_timeouts(t, now);
	if (t->plan->connections_over_time)
		follow_profile(t, now);
}

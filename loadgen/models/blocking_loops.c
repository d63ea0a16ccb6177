/* SPDX-License-Identifier: MIT */
/* A load thread without an event loop, as a plain C client works: write, then read until the answer is
 * complete (--blocking); or write continuously and read the answers later, in bulk (--no-wait). It measures
 * the cost and benefit of that style, so it makes the same system calls as such a client and no others: no
 * poll, no timer, but a socket time-out, which takes no call. */
#include "load_models.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "due_requests.h"
#include "hand_over.h"
#include "loadgen/engine/answers.h"
#include "loadgen/engine/connection.h"
#include "loadgen/engine/finish.h"
#include "loadgen/engine/lifecycle.h"
#include "loadgen/engine/load_thread.h"
#include "loadgen/engine/send.h"
#include "loadgen/engine/transport.h"
#include "recording/recording.h"

#define SECOND_NS 1000000000ull

/* How long a read may block before we check whether the run should end. */
static const struct timeval look_up = {0, 100000};

static bool is_over(struct load_thread *t, uint64_t now_ns)
{
	return atomic_load_explicit(&t->plan->ending.stop, memory_order_relaxed) || t->stopping ||
	       now_ns >= t->plan->end_ns || !t->model->more(t, now_ns);
}

static void set_up(struct connection *c)
{
	int flags = fcntl(c->fd, F_GETFL);

	/* With answers read later, the peer's queue may fill: then writing must yield to reading. */
	if (!c->thread->plan->no_wait)
		fcntl(c->fd, F_SETFL, flags & ~O_NONBLOCK);
	if (c->tls)
		tls_set_blocking(c->tls, true);
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &look_up, sizeof(look_up));
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &look_up, sizeof(look_up));
}

/* Whether to continue waiting for an answer (since_ns: when the last one arrived); otherwise the connection
 * has failed. */
static bool has_patience(struct connection *c, uint64_t now_ns, uint64_t since_ns)
{
	struct load_thread *t = c->thread;
	uint64_t limit = t->plan->timeout_ns, wait = t->plan->drain_ns;

	/* This thread is not woken when the run is stopped: it checks itself. */
	if (atomic_load(&t->plan->ending.stop) && !t->stopping) {
		t->stopping = true;
		t->give_up_ns = now_ns + (wait < SECOND_NS ? wait : SECOND_NS);
	}
	if (limit && now_ns - since_ns > limit)
		connection_fail(c, FT_STATUS_TIMEOUT, "no answer within --timeout");
	else if (now_ns >= t->give_up_ns || atomic_load(&t->plan->ending.abandon))
		connection_fail(c, FT_STATUS_TIMEOUT, "the server did not answer in time");
	return c->fd >= 0;
}

/* Writes the rest of a batch now, reading answers meanwhile, so that the two sides can't block each other. */
static void push_backlog(struct connection *c, const char *bytes, size_t length)
{
	struct load_thread *t = c->thread;
	struct pollfd p = {.fd = c->fd, .events = POLLIN | POLLOUT};
	uint64_t since = ft_now_ns();

	while (length > 0 && c->fd >= 0) {
		ssize_t n;

		if (poll(&p, 1, 100) <= 0) {
			if (!has_patience(c, ft_now_ns(), since))
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
				take_answers(c, (size_t)n, ft_now_ns());
		}
	}
}

/* Reads until no request is in flight. */
static void read_answers(struct connection *c)
{
	struct load_thread *t = c->thread;
	uint64_t now, since = ft_now_ns();
	uint32_t before = c->in_flight;
	int flags = t->plan->no_wait ? fcntl(c->fd, F_GETFL) : 0;

	if (c->to_send) /* further steps, for answers that were read while a write had no space */
		send_batch(c, 0);
	if (t->plan->no_wait)
		fcntl(c->fd, F_SETFL, flags & ~O_NONBLOCK);
	while (c->fd >= 0 && c->in_flight > 0) {
		ssize_t n = transport_read(c, t->read_buffer, READ_BYTES);

		now = ft_now_ns();
		if (n > 0) {
			if (take_answers(c, (size_t)n, now))
				t->stats->last_end_ns = now;
			if (c->fd >= 0 && c->to_send)
				send_batch(c, 0);
			/* Bytes that do not complete an answer are no progress. */
			if (c->in_flight < before)
				since = now;
			else if (c->fd >= 0)
				has_patience(c, now, since);
			before = c->in_flight;
		} else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			hand_over_tick(t, now);
			has_patience(c, now, since);
		} else {
			connection_fail(c, FT_STATUS_RESET, transport_why(c, n));
		}
	}
	if (c->fd >= 0 && t->plan->no_wait)
		fcntl(c->fd, F_SETFL, flags);
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* Sleeps at most until the run is over, in parts so that a signal is noticed. */
static void pause_until(struct load_thread *t, uint64_t ns)
{
	uint64_t now = ft_now_ns();

	while (now < ns && !is_over(t, now)) {
		sleep_until(ns - now > SECOND_NS / 10 ? now + SECOND_NS / 10 : ns);
		now = ft_now_ns();
	}
}

/* Connects and greets, and waits for it. False: it failed and was counted. */
static bool open_now(struct connection *c, unsigned patience_s)
{
	const struct endpoint *e = c->group->endpoint;
	const char *why = NULL;
	uint64_t now = ft_now_ns();

	c->life.begun_ns = now;
	c->fd = socket_open(&e->socket, c->id, patience_s);
	if (c->fd >= 0)
		connection_secure(c, &why);
	else if (c->waiting) /* otherwise the reason why it broke says more */
		why = strerror(-c->fd);
	if (c->fd < 0) {
		connection_count_refusal(c, why, now);
		return false;
	}
	connection_reset(c);
	connection_note_open(c);
	set_up(c);
	(void)!transport_write(c, e->greeting, e->greeting_bytes);
	return true;
}

/* Reopens a broken connection repeatedly, until the run is over. */
static bool open_again(struct load_thread *t, struct connection *c)
{
	uint64_t wait_ns = (uint64_t)t->plan->backoff_ms * 1000000;

	while (c->fd < 0 && (t->plan->on_error == ON_ERROR_RECONNECT || c->waiting) &&
	       !is_over(t, ft_now_ns())) {
		pause_until(t, ft_now_ns() + wait_ns);
		wait_ns = wait_ns * 2 < 5 * SECOND_NS ? wait_ns * 2 : 5 * SECOND_NS;
		if (open_now(c, 1)) {
			c->waiting = false;
			c->life.backoff_ms = 0;
		} else {
			c->life.backoff_ms = t->plan->backoff_ms;
		}
	}
	return c->fd >= 0;
}

/* Replaces a connection that has sent its number of requests. A refused connection is retried, whatever the
 * policy for broken ones. */
static void renew(struct connection *c)
{
	connection_close(c, ft_now_ns());
	c->life.backoff_ms = 0;
	c->waiting = true;
	if (open_now(c, 5))
		c->waiting = false;
}

/* ---- taking requests ---- */

static void closed_pump(struct load_thread *t, uint64_t now_ns)
{
	struct connection *c = thread_connection(t, 0);
	uint32_t count = t->left < t->plan->batch ? (uint32_t)t->left : t->plan->batch;

	(void)now_ns;
	t->left -= count;
	while (count-- > 0)
		take_up(c, 0);
	send_batch(c, 0);
}

/* Waits for the next request that falls due. Sends nothing if the run is over by then. */
static void open_pump(struct load_thread *t, uint64_t now_ns)
{
	struct connection *c = thread_connection(t, 0);

	if (t->pacing.due_ns > now_ns) {
		pause_until(t, t->pacing.due_ns);
		if (is_over(t, ft_now_ns()))
			return;
	}
	take_up(c, t->pacing.due_ns);
	pacing_take(&t->pacing);
	send_batch(c, 0);
}

/* ---- the run ---- */

static int init(struct load_thread *t)
{
	(void)t;
	return 0;
}

static void run(struct load_thread *t)
{
	struct connection *c = thread_connection(t, 0);
	const struct load_plan *plan = t->plan;
	uint64_t now = ft_now_ns(), next_tick = plan->start_ns + SECOND_NS;

	set_up(c);
	while (!is_over(t, now)) {
		if (c->fd < 0 && !open_again(t, c))
			break;
		t->model->pump(t, now);
		if (c->fd >= 0 && (!plan->no_wait || c->in_flight + plan->batch > c->ring_size))
			read_answers(c);
		if (c->fd >= 0 && plan->reconnect_after && c->taken >= plan->reconnect_after) {
			read_answers(c);
			if (c->fd >= 0)
				renew(c);
		}
		if (plan->think_ns)
			pause_until(t, ft_now_ns() + plan->think_ns);
		now = t->stats->last_end_ns > now && !plan->think_ns ? t->stats->last_end_ns : ft_now_ns();
		if (now >= next_tick) {
			hand_over_tick(t, now);
			next_tick = now + SECOND_NS;
		}
	}
	if (c->fd >= 0)
		read_answers(c);
	fail_unsent(t, ft_now_ns());
}

const struct load_model blocking_closed_loop = {
    .init = init,
    .run = run,
    .pump = closed_pump,
    .more = closed_more,
    .on_backlog = push_backlog,
    .on_loss = fail_in_flight,
    .step = send_step,
};

const struct load_model blocking_open_loop = {
    .init = init,
    .run = run,
    .pump = open_pump,
    .more = due_more,
    .fail_unsent = due_fail_unsent,
    .on_backlog = push_backlog,
    .on_loss = fail_in_flight,
    .step = send_step,
};

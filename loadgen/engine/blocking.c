/* SPDX-License-Identifier: MIT */
/* A load thread without an event loop, as a plain C client works: write, then read until the answer is
 * there (--blocking); or write on and on and read the answers later, in bulk (--no-wait).
 *
 * It is here to measure what that way of working costs and gains, so it makes the system calls such a client
 * makes and no others: no poll, no timer, but a time-out on the socket, which costs no call.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "recording/recording.h"
#include "thread.h"
#include "transport.h"

#define SECOND_NS 1000000000ull

/* How long a read may hold us up before we see whether the run is to end. */
static const struct timeval look_up = {0, 100000};

static bool over(struct load_thread *t, uint64_t now_ns)
{
	return atomic_load_explicit(&t->plan->stop, memory_order_relaxed) || t->stopping ||
	       now_ns >= t->plan->end_ns ||
	       (t->plan->open_loop ? t->pacing.due_ns == PACING_NEVER : t->left == 0);
}

static void set_up(struct connection *c)
{
	int flags = fcntl(c->fd, F_GETFL);

	/* With answers read later the other side's queue may fill: then writing has to give way to reading.
	 */
	if (!c->thread->plan->no_wait)
		fcntl(c->fd, F_SETFL, flags & ~O_NONBLOCK);
	if (c->tls)
		tls_set_blocking(c->tls, true);
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &look_up, sizeof(look_up));
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &look_up, sizeof(look_up));
}

bool blocking_patience(struct connection *c, uint64_t now_ns, uint64_t since_ns)
{
	struct load_thread *t = c->thread;
	uint64_t limit = t->plan->timeout_ns, wait = t->plan->drain_ns;

	/* Nobody wakes this thread when the run is stopped: it looks for itself. */
	if (atomic_load(&t->plan->stop) && !t->stopping) {
		t->stopping = true;
		t->give_up_ns = now_ns + (wait < SECOND_NS ? wait : SECOND_NS);
	}
	if (limit && now_ns - since_ns > limit)
		connection_fail(c, FT_STATUS_TIMEOUT, "no answer within --timeout");
	else if (now_ns >= t->give_up_ns || atomic_load(&t->plan->abandon))
		connection_fail(c, FT_STATUS_TIMEOUT, "the server did not answer in time");
	return c->fd >= 0;
}

/* Reads until at most `keep` requests are in flight. */
static void read_answers(struct connection *c, uint32_t keep)
{
	struct load_thread *t = c->thread;
	uint64_t now, since = ft_now_ns();
	uint32_t before = c->in_flight;
	int flags = t->plan->no_wait ? fcntl(c->fd, F_GETFL) : 0;

	if (c->to_send) /* further steps, of answers that were read while a write had no room */
		send_batch(c, 0);
	if (t->plan->no_wait)
		fcntl(c->fd, F_SETFL, flags & ~O_NONBLOCK);
	while (c->fd >= 0 && c->in_flight > keep) {
		ssize_t n = transport_read(c, t->read_buffer, READ_BYTES);

		now = ft_now_ns();
		if (n > 0) {
			if (take_answers(c, t->read_buffer, t->read_buffer + n, now))
				t->stats->last_end_ns = now;
			if (c->fd >= 0 && c->to_send)
				send_batch(c, 0);
			/* Bytes without an answer's end are no progress. */
			if (c->in_flight < before)
				since = now;
			else if (c->fd >= 0)
				blocking_patience(c, now, since);
			before = c->in_flight;
		} else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			load_thread_tick(t, now);
			blocking_patience(c, now, since);
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

/* Sleeps, at most until the run is over, in parts so that a signal is seen. */
static void pause_until(struct load_thread *t, uint64_t ns)
{
	uint64_t now = ft_now_ns();

	while (now < ns && !over(t, now)) {
		sleep_until(ns - now > SECOND_NS / 10 ? now + SECOND_NS / 10 : ns);
		now = ft_now_ns();
	}
}

/* Opens a connection that broke, again and again, until the run is over. */
static bool open_again(struct load_thread *t, struct connection *c)
{
	uint64_t wait_ns = (uint64_t)t->plan->backoff_ms * 1000000;
	const char *why;

	while (c->fd < 0 && (t->plan->on_error == ON_ERROR_RECONNECT || c->waiting) &&
	       !over(t, ft_now_ns())) {
		uint64_t now = ft_now_ns();

		pause_until(t, now + wait_ns);
		wait_ns = wait_ns * 2 < 5 * SECOND_NS ? wait_ns * 2 : 5 * SECOND_NS;
		c->fd = socket_open(&c->group->endpoint->socket, c->id, 1);
		if (c->fd >= 0 && !connection_secure(c, &why))
			t->broken = why;
		if (c->fd < 0) {
			stats_note_error(t->stats, FT_STATUS_REFUSED, now);
			t->stats->connects_failed++;
			c->fd = -1;
			c->backoff_ms = t->plan->backoff_ms;
			count_error(t);
			continue;
		}
		c->taken = c->first = 0;
		c->batch_ends = false;
		c->closed_ns = 0;
		c->waiting = false;
		c->backoff_ms = 0;
		c->greetings = c->group->endpoint->greetings;
		memset(&c->scan, 0, sizeof(c->scan));
		set_up(c);
		(void)!transport_write(c, c->group->endpoint->greeting, c->group->endpoint->greeting_bytes);
	}
	return c->fd >= 0;
}

static uint32_t batch_of(const struct load_thread *t)
{
	uint32_t count = t->plan->open_loop ? 1 : t->plan->batch;

	return !t->plan->open_loop && t->left < count ? (uint32_t)t->left : count;
}

void run_blocking(struct load_thread *t)
{
	struct connection *c = thread_connection(t, 0);
	const struct load_plan *plan = t->plan;
	uint64_t now = ft_now_ns(), next_tick = plan->start_ns + SECOND_NS;

	set_up(c);
	while (!over(t, now)) {
		uint32_t count = batch_of(t);

		if (c->fd < 0 && !open_again(t, c))
			break;
		if (plan->open_loop && t->pacing.due_ns > now) {
			pause_until(t, t->pacing.due_ns);
			now = ft_now_ns();
			if (over(t, now))
				break;
		}
		for (uint32_t i = 0; i < count; i++) {
			take_up(c, plan->open_loop ? t->pacing.due_ns : 0);
			if (plan->open_loop)
				pacing_take(&t->pacing);
			else
				t->left--;
		}
		send_batch(c, 0);
		if (c->fd >= 0 && (!plan->no_wait || c->in_flight + plan->batch > c->ring_size))
			read_answers(c, 0);
		if (c->fd >= 0 && plan->reconnect_after && c->taken >= plan->reconnect_after) {
			read_answers(c, 0);
			if (c->fd >= 0)
				connection_renew(c, ft_now_ns());
			if (c->fd >= 0)
				set_up(c);
		}
		if (plan->think_ns)
			pause_until(t, ft_now_ns() + plan->think_ns);
		now = t->stats->last_end_ns > now && !plan->think_ns ? t->stats->last_end_ns : ft_now_ns();
		if (now >= next_tick) {
			load_thread_tick(t, now);
			next_tick = now + SECOND_NS;
		}
	}
	if (c->fd >= 0)
		read_answers(c, 0);
	fail_unsent(t, ft_now_ns());
}

/* SPDX-License-Identifier: MIT */
/* The load models of one server: closed loop, open loop, and their forms that block. */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "load_models.h"
#include "loadgen/engine.h"
#include "loadgen/models.h"
#include "recording/recording.h"

/* The closed loop: a connection keeps up to `pipeline` requests outstanding, sent `batch` at a time. It sends
 * the next ones when answers have freed space, at once or after a think time. On the hot path. */

/* Takes as many requests as there is space and need for, and sends them. now_ns 0: unknown. */
static void refill(struct connection *c, uint64_t now_ns)
{
	struct load_thread *t = c->thread;
	const struct load_plan *plan = t->plan;

	while (can_send(c)) {
		uint32_t count = plan->options->batch;

		if (t->left < count)
			count = (uint32_t)t->left;
		if (plan->options->reconnect_after && plan->options->reconnect_after - c->taken < count)
			count = plan->options->reconnect_after - c->taken;
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
	finish_if_done(t, now_ns ? now_ns : ft_now_ns());
}

/* At the start, and when a profile lets other connections send. */
static void pump(struct load_thread *t, uint64_t now_ns)
{
	(void)now_ns;
	for (uint32_t i = 0; i < t->connection_count && !t->finished; i++) {
		struct connection *c = thread_connection(t, i);

		if (c->fd >= 0 && c->in_flight == 0 && !c->waiting)
			refill(c, 0);
	}
}

/* Whether the connection has sent its number of requests and must be replaced. */
static bool is_worn_out(const struct connection *c)
{
	const struct load_thread *t = c->thread;

	return t->plan->options->reconnect_after && c->taken >= t->plan->options->reconnect_after &&
	       t->left > 0 && !t->stopping;
}

static void end_think(void *who, uint64_t now_ns)
{
	struct connection *c = who;

	c->waiting = false;
	if (c->fd >= 0 && is_worn_out(c))
		connection_renew(c, now_ns);
	else if (c->fd >= 0)
		refill(c, now_ns);
	else if (c->thread->plan->options->on_error == ON_ERROR_RECONNECT && !c->thread->stopping)
		connection_try_later(c, now_ns);
}

/* Sends nothing during the think time. */
static void think(struct connection *c, uint64_t now_ns)
{
	if (c->thread->left > 0 && now_ns < c->thread->plan->end_ns)
		connection_come_back(c, now_ns + c->thread->plan->options->think_ns, end_think);
	else
		finish_if_done(c->thread, now_ns);
}

/* There may be space. */
static inline void continue_load(struct connection *c, uint64_t now_ns)
{
	const struct load_plan *plan = c->thread->plan;

	if (plan->options->think_ns) {
		if (c->in_flight == 0 && !c->waiting)
			think(c, now_ns);
	} else if (c->in_flight == 0 && is_worn_out(c)) {
		connection_renew(c, now_ns);
	} else if (c->ring_size - c->in_flight >= plan->options->batch || c->in_flight == 0) {
		refill(c, now_ns);
	}
}

/* Separate, so that on_answers() needs to save nothing over a call if there are no further steps: at pipeline
 * 1 this saves 1 % of a GET's instructions (callgrind). */
static __attribute__((noinline)) void send_steps(struct connection *c, uint64_t now_ns)
{
	send_batch(c, 0);
	if (c->fd >= 0)
		continue_load(c, now_ns);
}

static void on_answers(struct connection *c, uint64_t now_ns)
{
	if (__builtin_expect(c->to_send > 0, 0))
		send_steps(c, now_ns);
	else
		continue_load(c, now_ns);
}

const struct load_model closed_loop = {
    .init = event_loop_init,
    .run = event_loop_run,
    .pump = pump,
    .more = closed_more,
    .on_readable = connection_readable,
    .on_writable = connection_writable,
    .on_room = refill,
    .on_answers = on_answers,
    .on_backlog = connection_keep_backlog,
    .on_loss = fail_in_flight,
    .step = send_step,
};

/* The open loop: a request that falls due goes to the connection that has been idle longest, otherwise to one
 * with space in its pipeline. While none has space it waits, and its latency counts from when it was due. On
 * the hot path. */

static void pump_open(struct load_thread *t, uint64_t now_ns)
{
	const struct group *g = t->groups[0];
	struct connection *c;

	while (t->pacing.due_ns <= now_ns && connection_list_first(g)) {
		struct connection *batch = NULL, **last = &batch;

		/* Assigns all due requests, then writes once per connection. */
		while (t->pacing.due_ns <= now_ns && (c = connection_list_first(g))) {
			if (c->to_send == 0) {
				c->next_to_send = NULL;
				*last = c;
				last = &c->next_to_send;
			}
			take_up(c, t->pacing.due_ns);
			pacing_take(&t->pacing);
			connection_list_update(c);
		}
		while ((c = batch)) {
			batch = c->next_to_send;
			send_batch(c, 0);
		}
		now_ns = ft_now_ns();
	}
	if (connection_list_first(g))
		due_arm(t, t->pacing.due_ns);
	finish_if_done(t, now_ns);
}

static void on_room(struct connection *c, uint64_t now_ns)
{
	connection_list_update(c);
	pump_open(c->thread, now_ns);
}

static void on_open_answers(struct connection *c, uint64_t now_ns)
{
	const struct load_plan *plan = c->thread->plan;

	if (__builtin_expect(c->to_send > 0, 0)) { /* further steps */
		send_batch(c, 0);
		if (c->fd < 0)
			return;
	}
	if (__builtin_expect(plan->options->reconnect_after && c->in_flight == 0, 0) &&
	    c->taken >= plan->options->reconnect_after)
		connection_renew(c, now_ns);
	else
		connection_list_update(c);
	pump_open(c->thread, now_ns);
}

const struct load_model open_loop = {
    .init = event_loop_init,
    .run = event_loop_run,
    .pump = pump_open,
    .more = due_more,
    .fail_unsent = due_fail_unsent,
    .on_readable = connection_readable,
    .on_writable = connection_writable,
    .update_list = connection_list_update,
    .on_room = on_room,
    .on_answers = on_open_answers,
    .on_backlog = connection_keep_backlog,
    .on_loss = fail_in_flight,
    .step = send_step,
};

/* A load thread without an event loop, as a plain C client works: write, then read until the answer is
 * complete (--blocking); or write continuously and read the answers later, in bulk (--no-wait). It measures
 * the cost and benefit of that style, so it makes the same system calls as such a client and no others: no
 * poll, no timer, but a socket time-out, which takes no call. */

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
	if (!c->thread->plan->options->no_wait)
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
	uint64_t limit = t->plan->options->timeout_ns, wait = t->plan->options->drain_ns;

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
	int flags = t->plan->options->no_wait ? fcntl(c->fd, F_GETFL) : 0;

	if (c->to_send) /* further steps, for answers that were read while a write had no space */
		send_batch(c, 0);
	if (t->plan->options->no_wait)
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
	if (c->fd >= 0 && t->plan->options->no_wait)
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
	uint64_t wait_ns = (uint64_t)t->plan->options->backoff_ms * 1000000;

	while (c->fd < 0 && (t->plan->options->on_error == ON_ERROR_RECONNECT || c->waiting) &&
	       !is_over(t, ft_now_ns())) {
		pause_until(t, ft_now_ns() + wait_ns);
		wait_ns = wait_ns * 2 < 5 * SECOND_NS ? wait_ns * 2 : 5 * SECOND_NS;
		if (open_now(c, 1)) {
			c->waiting = false;
			c->life.backoff_ms = 0;
		} else {
			c->life.backoff_ms = t->plan->options->backoff_ms;
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
	uint32_t count = t->left < t->plan->options->batch ? (uint32_t)t->left : t->plan->options->batch;

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
		if (c->fd >= 0 &&
		    (!plan->options->no_wait || c->in_flight + plan->options->batch > c->ring_size))
			read_answers(c);
		if (c->fd >= 0 && plan->options->reconnect_after &&
		    c->taken >= plan->options->reconnect_after) {
			read_answers(c);
			if (c->fd >= 0)
				renew(c);
		}
		if (plan->options->think_ns)
			pause_until(t, ft_now_ns() + plan->options->think_ns);
		now = t->stats->last_end_ns > now && !plan->options->think_ns ? t->stats->last_end_ns
									      : ft_now_ns();
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

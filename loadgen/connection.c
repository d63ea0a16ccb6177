/* SPDX-License-Identifier: MIT */
/* The hot path: answers in, requests out.
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
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "recording/recording.h"
#include "thread.h"

enum { SHARED_CLOCK_REQUESTS = 2 };

static void leave_room(struct connection *c)
{
	struct load_thread *t = c->thread;

	if (c->room == ROOM_IDLE)
		TAILQ_REMOVE(&t->idle, c, with_room);
	else if (c->room == ROOM_PARTIAL)
		TAILQ_REMOVE(&t->partial, c, with_room);
	c->room = ROOM_NONE;
}

/* Puts the connection at the end of the list that it belongs to now. Open loop only. */
static void settle_room(struct connection *c)
{
	struct load_thread *t = c->thread;

	leave_room(c);
	if (c->fd < 0 || c->unsent || c->in_flight == c->ring_size)
		return;
	if (c->in_flight == 0) {
		TAILQ_INSERT_TAIL(&t->idle, c, with_room);
		c->room = ROOM_IDLE;
	} else {
		TAILQ_INSERT_TAIL(&t->partial, c, with_room);
		c->room = ROOM_PARTIAL;
	}
}

static inline uint32_t ring_index(const struct connection *c, uint32_t at)
{
	uint32_t size = c->ring_size, i = c->first + at;

	return i < size ? i : i - size;
}

/* A request ended: counts it and logs it. */
static inline void record(struct load_thread *t, uint32_t connection, const struct pending *p,
			  uint64_t end_ns, unsigned status, uint64_t bytes)
{
	struct operation_stats *s = t->stats->operations[p->operation];
	struct ft_request q = {
	    .intended_ns = p->intended_ns,
	    .start_ns = p->start_ns,
	    .end_ns = end_ns,
	    .connection = connection,
	    .op = p->operation,
	    .status = (uint8_t)status,
	};

	s->status[status]++;
	s->bytes += bytes;
	if (status_has_latency(status))
		ft_histogram_add(&s->latency, end_ns - p->intended_ns);
	log_append(&t->lane, &q);
}

void check_finished(struct load_thread *t, uint64_t now_ns)
{
	bool more = t->plan->open_loop ? t->pacing.due_ns != PACING_NEVER
				       : t->left > 0 && now_ns < t->plan->end_ns && !t->stopping;

	if (t->finished || t->in_flight > 0 || (more && t->alive > 0))
		return;
	if (t->alive == 0)
		fail_unsent(t, now_ns);
	t->finished = true;
	event_base_loopbreak(t->base);
}

void connection_fail(struct connection *c, unsigned status, const char *why)
{
	struct load_thread *t = c->thread;
	uint64_t now = ft_now_ns();

	if (c->fd < 0)
		return;
	for (uint32_t i = 0; i < c->in_flight; i++) {
		struct pending *p = &c->pending[ring_index(c, i)];
		if (i >= c->in_flight - c->to_send)
			p->start_ns = now;
		if (i >= c->in_flight - c->to_send && !t->plan->open_loop)
			p->intended_ns = now;
		record(t, c->id, p, now, status, 0);
	}
	t->in_flight -= c->in_flight;
	c->in_flight = c->to_send = 0;
	leave_room(c);
	event_del(&c->readable);
	if (c->unsent) {
		event_del(&c->unsent->writable);
		free(c->unsent);
		c->unsent = NULL;
	}
	close(c->fd);
	c->fd = -1;
	c->closed_ns = now;
	t->alive--;
	if (status != FT_STATUS_TIMEOUT) {
		t->lost++;
		t->broken = why;
	}
	check_finished(t, now);
}

void fail_unsent(struct load_thread *t, uint64_t now_ns)
{
	if (!t->plan->open_loop)
		return;
	pacing_stop(&t->pacing, now_ns);
	t->lane.patient = true; /* there may be millions, and nothing is measured any more */
	while (t->pacing.due_ns != PACING_NEVER) {
		struct pending p = {
		    .intended_ns = t->pacing.due_ns,
		    .start_ns = now_ns,
		    .operation = (uint8_t)choose_operation(&t->plan->workload, &t->chooser),
		};
		record(t, NO_CONNECTION, &p, now_ns, FT_STATUS_UNSENT, 0);
		pacing_take(&t->pacing);
	}
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;
	struct unsent *u = c->unsent;
	ssize_t n = write(fd, u->bytes + u->done, u->length - u->done);

	(void)what;
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		connection_fail(c, FT_STATUS_RESET, strerror(errno));
		return;
	}
	if (n > 0)
		u->done += (size_t)n;
	if (u->done < u->length)
		return;
	event_del(&u->writable);
	free(u);
	c->unsent = NULL;
	if (c->thread->plan->open_loop) {
		settle_room(c);
		open_loop_pump(c->thread, ft_now_ns());
	}
}

/* Keeps what the kernel did not take, to be written when it can. */
static void keep_unsent(struct connection *c, const char *bytes, size_t length)
{
	struct unsent *u = malloc(sizeof(*u) + length);

	if (!u) {
		connection_fail(c, FT_STATUS_RESET, "out of memory");
		return;
	}
	u->done = 0;
	u->length = length;
	memcpy(u->bytes, bytes, length);
	c->unsent = u;
	event_assign(&u->writable, c->thread->base, c->fd, EV_WRITE | EV_PERSIST, on_writable, c);
	event_add(&u->writable, NULL);
	if (c->thread->plan->open_loop)
		settle_room(c);
}

/* Writes the requests that were taken up since the last call. now_ns 0: not known. */
static void send_batch(struct connection *c, uint64_t now_ns)
{
	struct load_thread *t = c->thread;
	const struct workload *w = &t->plan->workload;
	uint32_t count = c->to_send, from = ring_index(c, c->in_flight - count), at = 0;
	ssize_t n;

	for (uint32_t k = 0, i = from; k < count; k++) {
		const struct pending *p = &c->pending[i];
		at = request_put(&t->requests, w, k, at, p->operation, p->key);
		i = i + 1 < c->ring_size ? i + 1 : 0;
	}
	if (now_ns == 0 || count > SHARED_CLOCK_REQUESTS)
		now_ns = ft_now_ns();
	for (uint32_t k = 0, i = from; k < count; k++) {
		struct pending *p = &c->pending[i];
		p->start_ns = now_ns;
		if (t->plan->open_loop) {
			uint64_t late = now_ns - p->intended_ns;
			t->stats->late_sum_ns += late;
			if (late > t->stats->late_max_ns)
				t->stats->late_max_ns = late;
		} else {
			p->intended_ns = now_ns;
		}
		i = i + 1 < c->ring_size ? i + 1 : 0;
	}
	t->stats->sent += count;
	c->to_send = 0;
	do {
		n = write(c->fd, t->requests.bytes, at);
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)at)
		return;
	if (n < 0 && errno != EAGAIN)
		connection_fail(c, FT_STATUS_RESET, strerror(errno));
	else
		keep_unsent(c, t->requests.bytes + (n < 0 ? 0 : n), at - (size_t)(n < 0 ? 0 : n));
}

/* Adds a request to those in flight. In a closed loop it's due when it's sent. */
static inline void take_up(struct connection *c, uint64_t intended_ns)
{
	struct load_thread *t = c->thread;
	struct pending *p = &c->pending[ring_index(c, c->in_flight)];

	p->intended_ns = intended_ns;
	p->operation = (uint8_t)choose_operation(&t->plan->workload, &t->chooser);
	p->key = choose_key(&t->plan->workload, &t->chooser);
	c->in_flight++;
	c->to_send++;
	t->in_flight++;
}

void connection_refill(struct connection *c, uint64_t now_ns)
{
	struct load_thread *t = c->thread;
	uint32_t count = t->left < c->ring_size ? (uint32_t)t->left : c->ring_size;

	if (count == 0 || t->stopping || now_ns >= t->plan->end_ns) {
		check_finished(t, now_ns);
		return;
	}
	t->left -= count;
	while (count-- > 0)
		take_up(c, 0);
	send_batch(c, now_ns);
}

static struct connection *first_with_room(const struct load_thread *t)
{
	struct connection *c = TAILQ_FIRST(&t->idle);

	return c ? c : TAILQ_FIRST(&t->partial);
}

static void arm_due(struct load_thread *t)
{
	uint64_t due = t->pacing.due_ns;
	struct itimerspec when = {
	    .it_value = {.tv_sec = (time_t)(due / 1000000000), .tv_nsec = (long)(due % 1000000000)}};

	if (due == PACING_NEVER || due == t->armed_ns || !first_with_room(t))
		return;
	timerfd_settime(t->due_fd, TFD_TIMER_ABSTIME, &when, NULL);
	t->armed_ns = due;
}

void open_loop_pump(struct load_thread *t, uint64_t now_ns)
{
	struct connection *c;

	while (t->pacing.due_ns <= now_ns && first_with_room(t)) {
		struct connection *batch = NULL, **last = &batch;

		/* Hand out all that is due, then write once per connection. */
		while (t->pacing.due_ns <= now_ns && (c = first_with_room(t))) {
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

static unsigned status_of(struct load_thread *t, const struct resp_scanner *s, unsigned operation)
{
	const struct request_template *want = &t->plan->workload.templates[operation];

	if (s->kind == (uint8_t)want->kind)
		return FT_STATUS_OK;
	if (s->kind == '-') {
		stats_error_word(t->stats, s->word);
		return FT_STATUS_ERROR_REPLY;
	}
	return s->kind == RESP_NIL && want->nil_kind == RESP_NIL ? FT_STATUS_MISS : FT_STATUS_WRONG;
}

/* Matches answers to requests. False when the connection had to be given up. */
static bool take_answers(struct connection *c, const char *at, const char *end, uint64_t now_ns)
{
	struct load_thread *t = c->thread;

	while (at < end) {
		const char *from = at;
		const struct pending *p = &c->pending[c->first];
		int complete;

		if (c->in_flight == c->to_send) {
			connection_fail(c, FT_STATUS_WRONG, "the server sent an answer to no request");
			return false;
		}
		complete = resp_scan(&c->scan, &at, end);
		if (complete < 0) {
			connection_fail(c, FT_STATUS_WRONG, "the server sent what is no Redis reply");
			return false;
		}
		if (complete == 0) {
			t->stats->operations[p->operation]->bytes += (uint64_t)(at - from);
			return true;
		}
		record(t, c->id, p, now_ns, status_of(t, &c->scan, p->operation),
		       (uint64_t)(at - from) + t->plan->workload.templates[p->operation].length);
		c->first = ring_index(c, 1);
		c->in_flight--;
		t->in_flight--;
	}
	return true;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;
	struct load_thread *t = c->thread;
	uint64_t now = 0;
	ssize_t n;

	do {
		n = read(fd, t->read_buffer, READ_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			connection_fail(c, FT_STATUS_RESET,
					n == 0 ? "the server closed the connection" : strerror(errno));
			return;
		}
		now = ft_now_ns();
		if (!take_answers(c, t->read_buffer, t->read_buffer + n, now))
			return;
	} while (n < 0 || n == READ_BYTES || (what & EV_CLOSED));
	if (now == 0)
		return;
	t->stats->last_end_ns = now;
	if (t->plan->open_loop) {
		settle_room(c);
		open_loop_pump(t, now);
	} else if (c->in_flight == 0) {
		connection_refill(c, now);
	}
}

/* Of a TCP connection, else 0: the server's host knows it by this. */
static uint16_t local_port(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_storage room;
	} a;
	socklen_t size = sizeof(a);

	if (getsockname(fd, &a.any, &size))
		return 0;
	if (a.any.sa_family == AF_INET)
		return ntohs(a.v4.sin_port);
	return a.any.sa_family == AF_INET6 ? ntohs(a.v6.sin6_port) : 0;
}

int connection_open(struct connection *c, struct load_thread *t, int fd, uint32_t id, struct pending *ring)
{
	c->thread = t;
	c->fd = fd;
	c->id = id;
	c->pending = ring;
	c->ring_size = t->plan->pipeline;
	c->opened_ns = ft_now_ns();
	c->local_port = local_port(fd);
	if (t->plan->open_loop)
		settle_room(c);
	if (event_assign(&c->readable, t->base, fd, EV_READ | EV_CLOSED | EV_ET | EV_PERSIST, on_readable,
			 c) ||
	    event_add(&c->readable, NULL))
		return -ENOMEM;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* A connection's life: opening, breaking and reopening it, its two events (the clock of an answer is read in
 * connection_readable), and what it waits in: the list of those with space, timers, and its ring of requests.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "common/grow.h"
#include "loadgen/engine.h"
#include "loadgen/pending_queue.h"
#include "loadgen/timers.h"
#include "loadgen/workload.h"
#include "recording/recording.h"

/* Opening, breaking and reopening of connections. None of this is on the path of a request
 * on a healthy connection. A connection is reopened with a non-blocking connect(), so that requests on other
 * connections don't wait. Its set-up commands (AUTH, SELECT) are written before the first request, and their
 * answers are removed before the answer to the first request. */

/* Of a TLS handshake, as at set-up. */
#define HANDSHAKE_NS 5000000000u

enum { BACKOFF_MAX_MS = 5000 };

static bool needs_replies(const struct load_plan *plan)
{
	const struct workload *w = plan->workload;

	for (uint32_t i = 0; i < plan->mix.count; i++)
		if (reply_buffer_needed(w, &w->operations[plan->mix.operations[i]], 0) ||
		    reply_buffer_needed(w, &w->operations[plan->mix.operations[i]], 1))
			return true;
	return false;
}

static void update_list(struct connection *c)
{
	if (c->thread->model->update_list)
		c->thread->model->update_list(c);
}

static int watch_socket(struct connection *c)
{
	if (!c->thread->base)
		return 0;
	if (event_assign(&c->readable, c->thread->base, c->fd, EV_READ | EV_CLOSED | EV_ET | EV_PERSIST,
			 c->thread->model->on_readable, c) ||
	    event_add(&c->readable, NULL))
		return -ENOMEM;
	return 0;
}

struct ft_connection connection_record(const struct connection *c)
{
	const struct lifetime *life = &c->life;

	return (struct ft_connection){
	    .opened_ns = life->opened_ns,
	    .closed_ns = life->closed_ns,
	    .id = c->id,
	    .thread = c->thread->index,
	    .local_port = life->local_port,
	    .server = c->group->node,
	    .inode = life->inode,
	};
}

static void log_its_socket(const struct connection *c, uint64_t now_ns)
{
	const struct ft_connection record = connection_record(c);

	log_socket(&c->thread->lane, &record, now_ns);
}

/* Logs the addresses of its socket, and requests arrival times. */
static void note_socket(struct connection *c)
{
	c->life.local_port = socket_local_port(c->fd);
	c->life.inode = socket_inode(c->fd);
	c->life.tcp = (struct tcp_counts){.looked_ns = c->life.opened_ns};
	c->arrival_times = c->thread->plan->options->arrival_times && !c->tls && arrival_ask(c->fd);
}

/* Looks at what TCP did, and logs it, or if `only_what_happened` only what delays requests. */
static void look_at_tcp(struct connection *c, uint64_t now_ns, bool only_what_happened)
{
	struct ft_load_tcp *found = log_tcp_room(&c->thread->lane);

	if (!found || !c->life.local_port || c->fd < 0 || !tcp_look(c->fd, &c->life.tcp, found))
		return;
	c->life.tcp.looked_ns = now_ns;
	found->t_ns = now_ns;
	found->connection = c->id;
	if (!only_what_happened || found->retransmitted || found->receiver_limited_us ||
	    found->sender_limited_us || found->unsent_bytes)
		log_tcp(&c->thread->lane);
}

void connection_was_slow(struct connection *c, uint64_t now_ns)
{
	enum { AT_MOST_EVERY_NS = 1000000 }; /* answers of a pipeline come together */

	if (now_ns - c->life.tcp.looked_ns >= AT_MOST_EVERY_NS)
		look_at_tcp(c, now_ns, false);
}

void connection_note_end(struct connection *c, uint64_t now_ns)
{
	if (!c->connecting)
		look_at_tcp(c, now_ns, true);
}

void connection_note_open(struct connection *c)
{
	c->life.opened_ns = c->life.begun_ns;
	c->life.closed_ns = 0;
	note_socket(c);
	log_its_socket(c, c->life.opened_ns);
}

int connection_init(struct connection *c, struct load_thread *t, struct group *g, uint32_t id,
		    struct pending_request *ring)
{
	c->thread = t;
	c->meta = protocol_of(t->plan->workload->protocol)->numbers;
	c->group = g;
	c->id = id;
	c->pending = ring;
	c->ring_size = plan_ring_size(t->plan);
	c->life.opened_ns = ft_now_ns();
	if (c->fd >= 0)
		note_socket(c);
	if (needs_replies(t->plan)) {
		c->reply = reply_buffer_new(t->plan->workload);
		if (!c->reply)
			return -ENOMEM;
	}
	update_list(c);
	return c->fd < 0 ? 0 : watch_socket(c);
}

/* ---- reopening ---- */

void connection_come_back(struct connection *c, uint64_t when_ns, void (*act)(void *, uint64_t))
{
	c->waiting = true;
	timers_add(&c->thread->alarms.timers, when_ns, act, c);
}

static void reopen(void *who, uint64_t now_ns);

void connection_try_later(struct connection *c, uint64_t now_ns)
{
	uint32_t *backoff = &c->life.backoff_ms;

	*backoff = *backoff ? *backoff * 2 : c->thread->plan->options->backoff_ms;
	if (*backoff > BACKOFF_MAX_MS)
		*backoff = BACKOFF_MAX_MS;
	connection_come_back(c, now_ns + (uint64_t)*backoff * 1000000, reopen);
}

void connection_count_refusal(struct connection *c, const char *why, uint64_t now_ns)
{
	struct load_thread *t = c->thread;

	stats_note_error(t->stats, FT_STATUS_REFUSED, now_ns);
	t->stats->connects_failed++;
	if (why)
		t->trouble.why = why;
	count_error(t);
	c->fd = -1;
}

/* A connect() failed: counted, then retried or given up. */
static void take_refusal(struct connection *c, int error, uint64_t now_ns)
{
	struct load_thread *t = c->thread;

	connection_count_refusal(c, strerror(-error), now_ns);
	if (t->model->on_refusal)
		t->model->on_refusal(c, now_ns);
	if (t->stopping || t->plan->options->on_error == ON_ERROR_STOP) {
		t->alive--;
		t->trouble.lost++;
		finish_if_done(t, now_ns);
		return;
	}
	connection_try_later(c, now_ns);
}

/* A server was reached. */
static void take_connect(struct connection *c)
{
	connection_note_open(c);
	if (c->thread->model->on_connect)
		c->thread->model->on_connect(c);
}

void connection_reset(struct connection *c)
{
	c->taken = c->first = 0;
	c->greetings = c->group->endpoint->greetings;
	c->batch_ends = false;
	memset(&c->scan, 0, sizeof(c->scan));
	if (c->reply)
		reply_buffer_reset(c->reply);
}

void connection_keep_backlog(struct connection *c, const char *bytes, size_t length)
{
	if (write_backlog_keep(c, bytes, length))
		update_list(c);
	else
		connection_fail(c, FT_STATUS_RESET, "out of memory");
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
		take_refusal(c, fd, now_ns);
		return;
	}
	c->fd = fd;
	connection_reset(c);
	c->connecting = pending || e->tls_name;
	c->life.begun_ns = now_ns;
	if (watch_socket(c)) {
		connection_fail(c, FT_STATUS_RESET, "out of memory");
		return;
	}
	if (c->connecting || e->greeting_bytes)
		connection_keep_backlog(c, e->greeting, e->greeting_bytes);
	if (c->connecting || c->fd < 0)
		return;
	take_connect(c);
	if (!c->backlog) /* otherwise the greeting first; connection_writable continues */
		c->thread->model->on_room(c, now_ns);
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

/* A step of the TLS handshake, if there is one. Returns like tls_handshake. */
static int shake_hands(struct connection *c)
{
	const char *name = c->group->endpoint->tls_name;

	if (!name)
		return 0;
	if (!c->tls)
		c->tls = tls_session_new(name, c->fd);
	return c->tls ? tls_handshake(c->tls) : -ENOMEM;
}

/* Opening a connection failed. */
static void give_up_connect(struct connection *c, int error, const char *why)
{
	event_del(&c->readable);
	write_backlog_drop(c);
	c->connecting = false;
	close_socket(c);
	take_refusal(c, error, ft_now_ns());
	if (why)
		c->thread->trouble.why = why;
}

bool connection_finish_connect(struct connection *c)
{
	int rc = c->tls ? 0 : socket_result(c->fd);

	if (rc == 0)
		rc = shake_hands(c);
	if (rc == 0) {
		c->connecting = false;
		write_backlog_watch(c, true);
		take_connect(c);
		return true;
	}
	if (rc == -EAGAIN) {
		/* A socket is nearly always writable: watched only while we wait for that. */
		write_backlog_watch(c, tls_wants_write(c->tls));
		return false;
	}
	give_up_connect(c, rc, rc == -EPROTO ? transport_tls_why(c) : NULL);
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

		if (rc == -EAGAIN && poll(&p, 1, 100) == 0 && atomic_load(&c->thread->plan->ending.abandon))
			break;
		rc = shake_hands(c);
	} while (rc == -EAGAIN && ft_now_ns() < give_up_ns);
	if (rc == 0)
		return true;
	*why = rc == -EPROTO ? transport_tls_why(c) : rc == -EAGAIN ? too_long : strerror(-rc);
	close_socket(c);
	c->fd = -1;
	return false;
}

void expire_handshakes(struct load_thread *t, uint64_t now_ns)
{
	for (uint32_t i = 0; i < thread_connections(t) && !t->finished; i++) {
		struct connection *c = thread_connection(t, i);

		if (c->fd >= 0 && c->connecting && c->tls && now_ns - c->life.begun_ns > HANDSHAKE_NS)
			give_up_connect(c, -ETIMEDOUT, too_long);
	}
}

void connection_close(struct connection *c, uint64_t now_ns)
{
	bool connecting = c->connecting;

	connection_list_remove(c);
	if (c->thread->base)
		event_del(&c->readable);
	write_backlog_drop(c);
	connection_note_end(c, now_ns);
	close_socket(c);
	c->fd = -1;
	c->connecting = false;
	c->greetings = 0;
	/* A connection that was never open has no socket to log. */
	if (!connecting) {
		c->life.closed_ns = now_ns;
		log_its_socket(c, now_ns);
	}
}

void connection_renew(struct connection *c, uint64_t now_ns)
{
	connection_close(c, now_ns);
	c->life.backoff_ms = 0;
	reopen(c, now_ns);
}

void fail_in_flight(struct connection *c, uint32_t first, uint32_t in_flight, uint32_t unwritten,
		    unsigned status, uint64_t now_ns)
{
	(void)unwritten;
	c->thread->in_flight -= in_flight;
	for (uint32_t i = 0; i < in_flight; i++) {
		struct pending_request *p = &c->pending[(first + i) % c->ring_size];

		pending_set_sent(p, now_ns);
		record_end(c->thread, c->id, p, now_ns, status, 0);
	}
}

void connection_fail(struct connection *c, unsigned status, const char *why)
{
	struct load_thread *t = c->thread;
	const struct load_model *model = t->model;
	uint64_t now = ft_now_ns();
	uint32_t in_flight = c->in_flight, unwritten = c->to_send, first = c->first;
	bool again = t->plan->options->on_error == ON_ERROR_RECONNECT && !t->stopping &&
		     (now < t->plan->end_ns || model->reopens_in_drain);

	if (c->fd < 0)
		return;
	c->in_flight = c->to_send = c->asks = 0;
	connection_close(c, now);
	/* A connection that was accepted but never answered counts like a refused one. */
	if (c->taken > in_flight)
		c->life.backoff_ms = 0;
	model->on_loss(c, first, in_flight, unwritten, status, now);
	if (in_flight == 0) {
		stats_note_error(t->stats, status, now);
		if (!t->stopping)
			count_error(t); /* otherwise each request has been counted */
	}
	t->stats->broken++;
	if (status != FT_STATUS_TIMEOUT || t->plan->options->timeout_ns)
		t->trouble.why = why;
	if (!again) {
		t->alive--;
		if (status != FT_STATUS_TIMEOUT || !t->stopping)
			t->trouble.lost++;
	} else if (t->base && !c->waiting) {
		/* Otherwise it is in a think time, and the code that set its timer handles it; or there is no
		 * loop, and loops.c handles it. */
		connection_try_later(c, now);
	}
	if (model->take_over) /* earlier answers may have put requests on other connections */
		model->take_over(t, now);
	if (!again)
		finish_if_done(t, now);
}

/* A connection's two events: answers have arrived, and the kernel accepts bytes again. Each wake-up of a
 * connection takes one read() and one write(), and no epoll_ctl(): the descriptor stays registered,
 * edge-triggered. Edge triggering saves the kernel a second check of each descriptor, and is safe here: a
 * read that returns less than its size has emptied the socket, later bytes cause a new edge, and an end of
 * stream before the read shows as EV_CLOSED in the same event (then we read until we see it). The clock is
 * read once per read(): all answers that one read() returned end at that time. */

enum { READS_AT_ONCE = 64 };

void connection_writable(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;
	int written;

	(void)fd;
	(void)what;
	if (c->connecting && !connection_finish_connect(c))
		return;
	written = write_backlog_write(c);
	if (written < 0)
		connection_fail(c, FT_STATUS_RESET, transport_why(c, written));
	if (written <= 0)
		return;
	if (c->to_send > 0) { /* had to wait for writing */
		send_batch(c, 0);
		if (c->fd < 0)
			return;
	}
	c->thread->model->on_room(c, ft_now_ns());
	/* A read over TLS may have waited until the socket is writable. */
	if (c->tls && c->fd >= 0 && !c->connecting)
		connection_readable(c->fd, EV_READ, c);
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
			connection_writable(fd, what, c); /* the handshake continues */
		return;					  /* becoming writable shows the result */
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
		if (!take_answers(c, (size_t)n, now))
			return;
		/* An endless stream must not starve the loop's timers or other connections: adding the event
		 * again makes it fire again if there is more. */
		if (__builtin_expect(++rounds == READS_AT_ONCE, 0)) {
			event_del(&c->readable);
			event_add(&c->readable, NULL);
			if (!c->tls)
				break;
			tls_hold(c->tls); /* no event would report bytes that TLS has already read from the
					     socket */
		}
	} while (n < 0 || n == READ_BYTES || (what & EV_CLOSED) || transport_has_unread(c));
	if (__builtin_expect(c->tls != NULL, 0) && tls_wants_write(c->tls) && !c->backlog)
		connection_keep_backlog(c, NULL, 0);
	if (now == 0)
		return;
	t->stats->last_end_ns = now;
	t->model->on_answers(c, now);
}

/* Connections with space are on a list, so that finding one costs the same with ten connections and with ten
 * thousand. */

/* Appended to its list: the connection idle longest is first. */
void connection_list_update(struct connection *c)
{
	connection_list_remove(c);
	if (can_send(c) && c->in_flight < c->thread->plan->options->pipeline)
		connection_list_add(c, c->in_flight == 0 ? &c->group->idle : &c->group->partial);
}

/* A binary heap, because each of ten thousand connections may have a timer, and the descriptor that fires
 * when the first is due. */

#define SECOND_NS 1000000000ull

int timers_init(struct timers *t, uint32_t room)
{
	*t = (struct timers){.room = room, .fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)};
	if (t->fd < 0)
		return -errno;
	t->heap = malloc(sizeof(*t->heap) * room);
	return t->heap ? 0 : -ENOMEM;
}

void timers_free(struct timers *t)
{
	if (t->fd >= 0)
		close(t->fd);
	free(t->heap);
	t->heap = NULL;
}

static void arm(struct timers *t)
{
	struct itimerspec when = {0};
	uint64_t first = t->count ? t->heap[0].when_ns : 0;

	if (first == t->armed_ns)
		return;
	t->armed_ns = first;
	when.it_value.tv_sec = (time_t)(first / SECOND_NS);
	when.it_value.tv_nsec = (long)(first % SECOND_NS);
	timerfd_settime(t->fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void swap(struct timers *t, uint32_t a, uint32_t b)
{
	struct timer other = t->heap[a];

	t->heap[a] = t->heap[b];
	t->heap[b] = other;
}

static void push(struct timers *t, const struct timer *timer)
{
	uint32_t i = t->count++;

	t->heap[i] = *timer;
	for (; i > 0 && t->heap[(i - 1) / 2].when_ns > t->heap[i].when_ns; i = (i - 1) / 2)
		swap(t, i, (i - 1) / 2);
}

static struct timer pop(struct timers *t)
{
	struct timer first = t->heap[0];
	uint32_t i = 0;

	t->heap[0] = t->heap[--t->count];
	for (;;) {
		uint32_t least = i, left = 2 * i + 1;

		for (uint32_t k = left; k < left + 2 && k < t->count; k++)
			if (t->heap[k].when_ns < t->heap[least].when_ns)
				least = k;
		if (least == i)
			return first;
		swap(t, i, least);
		i = least;
	}
}

void timers_add(struct timers *t, uint64_t when_ns, void (*act)(void *, uint64_t), void *who)
{
	if (!grow(&t->heap, &t->room, t->count, sizeof(*t->heap)))
		abort(); /* a few bytes; without the timer a connection would stay silent forever */
	push(t, &(struct timer){when_ns, act, who});
	arm(t);
}

void timers_run(struct timers *t, uint64_t now_ns)
{
	t->armed_ns = 0;
	while (t->count && t->heap[0].when_ns <= now_ns) {
		struct timer due = pop(t);
		due.act(due.who, now_ns);
	}
	arm(t);
}

/* The ring of requests without a connection. It doubles when it is full and never shrinks. */

void pending_queue_push(struct pending_queue *w, const struct pending_request *p)
{
	if (w->count == w->room) {
		uint32_t room = w->room ? w->room * 2 : 64;
		struct pending_request *grown = malloc(room * sizeof(*grown));

		if (!grown)
			abort(); /* a request lost here would never end */
		for (uint32_t i = 0; i < w->count; i++)
			grown[i] = w->ring[(w->first + i) % w->room];
		free(w->ring);
		*w = (struct pending_queue){grown, 0, w->count, room};
	}
	w->ring[(w->first + w->count++) % w->room] = *p;
}

bool pending_queue_pop(struct pending_queue *w, struct pending_request *p)
{
	if (w->count == 0)
		return false;
	*p = w->ring[w->first];
	w->first = (w->first + 1) % w->room;
	w->count--;
	return true;
}

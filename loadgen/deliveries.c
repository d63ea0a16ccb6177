/* SPDX-License-Identifier: MIT */
/* The consumers' thread: an epoll loop, hiredis' reader, and what is counted. Commands are few and small, and
 * messages are parsed by the general way: it costs some microseconds a message, after the clock was read. */
#include "deliveries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "deliveries_parts.h"
#include "pacing.h"
#include "recording/recording.h"

#define SECOND_NS 1000000000ull
enum { EVENTS = 64, READ_AT_ONCE = 64 << 10, BACKOFF_MAX_MS = 5000, READY_SECONDS = 10 };

/* ---- counting ---- */

/* True the first time of a number, and of numbers too old to tell. */
static bool first_time(struct seen *s, uint64_t number)
{
	uint64_t *word = &s->bits[number % SEEN_NUMBERS / 64], bit = 1ull << number % 64;

	if (number >= s->highest) {
		uint64_t from = number - s->highest >= SEEN_NUMBERS ? number - SEEN_NUMBERS + 1 : s->highest;

		for (uint64_t i = from; i <= number; i++)
			s->bits[i % SEEN_NUMBERS / 64] &= ~(1ull << i % 64);
		s->highest = number + 1;
	} else if (s->highest - number > SEEN_NUMBERS) {
		return true;
	}
	if (*word & bit)
		return false;
	*word |= bit;
	return true;
}

/* The lock is held. */
void deliveries_take_message(struct consumer *c, const redisReply *payload, uint64_t end_ns)
{
	struct deliveries *d = c->deliveries;
	struct ft_request q = {
	    .end_ns = end_ns,
	    .connection = c->id,
	    .op = d->plan.operation,
	    .status = FT_STATUS_OK,
	};
	struct stamp s;

	c->backoff_ms = 0;
	if (payload->type != REDIS_REPLY_STRING ||
	    !stamp_read(payload->str, payload->len, d->plan.stamps->run, &s)) {
		d->how.foreign++;
		return;
	}
	if (!first_time(c->seen, s.number)) {
		d->how.duplicates++;
		return;
	}
	q.intended_ns = s.intended_ns;
	q.start_ns = s.start_ns;
	if (q.intended_ns >= d->measure_ns) {
		stats_add(d->stats, q.op, q.status, end_ns - q.intended_ns, payload->len);
		d->stats->last_end_ns = end_ns;
		atomic_fetch_add(&d->received, 1);
	}
	if (end_ns - q.intended_ns >= d->plan.log_over_ns)
		log_append(&d->lane, &q);
}

/* ---- connections ---- */

static void watch(struct consumer *c)
{
	struct epoll_event e = {
	    .events =
		EPOLLIN |
		(c->state == CONSUMER_CONNECTING || c->written < c->out.length ? (uint32_t)EPOLLOUT : 0),
	    .data.ptr = c,
	};

	epoll_ctl(c->deliveries->epoll_fd, EPOLL_CTL_MOD, c->fd, &e);
}

static bool admit(struct consumer *c)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};

	c->reader = redisReaderCreate();
	c->out.length = c->written = 0;
	c->greetings = 0;
	return c->reader && epoll_ctl(c->deliveries->epoll_fd, EPOLL_CTL_ADD, c->fd, &e) == 0;
}

static void log_connection(const struct consumer *c, bool ended)
{
	const struct deliveries_plan *plan = &c->deliveries->plan;
	struct ft_connection record = {
	    .opened_ns = c->opened_ns,
	    .closed_ns = ended && c->closed_ns == 0 ? ft_now_ns() : c->closed_ns,
	    .id = c->id,
	    .thread = plan->thread,
	    .local_port = c->local_port,
	};

	if (plan->log)
		ft_writer_record(request_log_writer(plan->log), FT_BLOCK_CONNECTION, &record);
}

static void try_later(struct consumer *c)
{
	c->backoff_ms = c->backoff_ms ? c->backoff_ms * 2 : c->deliveries->plan.backoff_ms;
	if (c->backoff_ms > BACKOFF_MAX_MS)
		c->backoff_ms = BACKOFF_MAX_MS;
	c->retry_ns = ft_now_ns() + (uint64_t)c->backoff_ms * 1000000;
}

static void let_go(struct consumer *c)
{
	if (c->state == CONSUMER_READY)
		c->deliveries->ready--;
	c->state = CONSUMER_CLOSED;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	if (c->reader)
		redisReaderFree(c->reader);
	c->reader = NULL;
}

/* A connection broke, or could not be opened again. */
static void broke(struct consumer *c, unsigned status, const char *why)
{
	struct deliveries *d = c->deliveries;
	uint64_t one = 1;

	let_go(c);
	c->closed_ns = ft_now_ns();
	c->retry_ns = PACING_NEVER;
	pthread_mutex_lock(&d->lock);
	stats_note_error(d->stats, status, c->closed_ns);
	if (status == FT_STATUS_REFUSED)
		d->stats->connects_failed++;
	else
		d->stats->broken++;
	d->how.broken++;
	d->how.why = why;
	pthread_mutex_unlock(&d->lock);
	if (d->plan.on_error == ON_ERROR_RECONNECT)
		try_later(c);
	if (d->started && d->plan.on_error == ON_ERROR_STOP && !atomic_exchange(d->plan.stop, true)) {
		atomic_store(d->plan.gave_up, true);
		(void)!write(d->plan.done_fd, &one, sizeof(one));
	}
}

/* Writes what is queued, as far as it goes. */
static void flush(struct consumer *c)
{
	ssize_t n;

	while (c->written < c->out.length) {
		n = write(c->fd, c->out.at + c->written, c->out.length - c->written);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) {
			broke(c, FT_STATUS_RESET, strerror(errno));
			return;
		}
		if (n < 0)
			break;
		c->written += (size_t)n;
	}
	if (c->written == c->out.length)
		c->out.length = c->written = 0;
	watch(c);
}

static void reopen(struct consumer *c)
{
	const struct endpoint *e = &c->deliveries->plan.endpoint;
	bool pending;

	c->retry_ns = PACING_NEVER;
	c->fd = socket_begin(&e->socket, c->id, &pending);
	if (c->fd < 0) {
		broke(c, FT_STATUS_REFUSED, strerror(-c->fd));
		return;
	}
	c->state = CONSUMER_CONNECTING;
	c->closed_ns = 0;
	if (!admit(c) || !bytes_reserve(&c->out, e->greeting_bytes + 1)) {
		broke(c, FT_STATUS_REFUSED, "out of memory");
		return;
	}
	if (e->greeting_bytes)
		bytes_add(&c->out, e->greeting, e->greeting_bytes);
	c->greetings = e->greetings;
	if (!consumer_prepare(c)) {
		broke(c, FT_STATUS_REFUSED, "out of memory");
		return;
	}
	if (pending) {
		watch(c);
		return;
	}
	c->state = CONSUMER_PREPARING;
	flush(c);
}

static void on_connected(struct consumer *c)
{
	int rc = socket_result(c->fd);

	if (rc) {
		broke(c, FT_STATUS_REFUSED, strerror(-rc));
		return;
	}
	c->local_port = socket_local_port(c->fd);
	c->state = CONSUMER_PREPARING;
	flush(c);
}

/* All whole replies that the reader has. NULL, or why the connection is no good any more. */
static const char *hear(struct consumer *c, uint64_t end_ns)
{
	const char *why = NULL;
	void *reply = NULL;

	pthread_mutex_lock(&c->deliveries->lock);
	while (!why) {
		if (redisReaderGetReply(c->reader, &reply) != REDIS_OK)
			why = "the server sent what is no reply in this protocol";
		if (!reply)
			break;
		why = consumer_heard(c, reply, end_ns);
		freeReplyObject(reply);
	}
	pthread_mutex_unlock(&c->deliveries->lock);
	return why;
}

static void on_readable(struct consumer *c, char *buffer)
{
	ssize_t n = read(c->fd, buffer, READ_AT_ONCE);
	uint64_t now = ft_now_ns();
	const char *why;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		broke(c, FT_STATUS_RESET, n == 0 ? "the server closed the connection" : strerror(errno));
		return;
	}
	if (redisReaderFeed(c->reader, buffer, (size_t)n) != REDIS_OK) {
		broke(c, FT_STATUS_WRONG, "out of memory");
		return;
	}
	why = hear(c, now);
	if (why) {
		broke(c, FT_STATUS_WRONG, why);
		return;
	}
	if (c->state == CONSUMER_PREPARING && c->greetings == 0 && c->awaited == 0) {
		c->state = CONSUMER_READY;
		c->deliveries->ready++;
	}
	if (c->out.length)
		flush(c);
}

/* ---- the thread ---- */

/* Opens again whose time has come. Milliseconds to the next, at most a second. */
static int retry(struct deliveries *d)
{
	uint64_t now = ft_now_ns(), next = now + SECOND_NS;

	if (d->plan.on_error != ON_ERROR_RECONNECT)
		return 1000;
	for (uint32_t i = 0; i < d->plan.consumers; i++) {
		struct consumer *c = &d->consumers[i];

		if (c->state == CONSUMER_CLOSED && c->retry_ns <= now)
			reopen(c);
		if (c->state == CONSUMER_CLOSED && c->retry_ns < next)
			next = c->retry_ns;
	}
	return next > now ? (int)((next - now) / 1000000) + 1 : 0;
}

/* One turn of the loop. */
static void turn(struct deliveries *d, char *buffer, int timeout_ms)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(d->epoll_fd, events, EVENTS, timeout_ms);

	for (int i = 0; i < n; i++) {
		struct consumer *c = events[i].data.ptr;
		uint64_t count;

		if (!c) {
			(void)!read(d->wake_fd, &count, sizeof(count));
			continue;
		}
		if (c->fd < 0)
			continue;
		if (c->state == CONSUMER_CONNECTING)
			on_connected(c);
		else if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
			on_readable(c, buffer);
		if (c->fd >= 0 && c->out.length && (events[i].events & EPOLLOUT))
			flush(c);
	}
}

static void *run_thread(void *arg)
{
	struct deliveries *d = arg;
	char *buffer = malloc(READ_AT_ONCE);
	uint64_t flushed = ft_now_ns(), now;

	pthread_setname_np(pthread_self(), "consumers");
	prctl(PR_SET_TIMERSLACK, 1ul);
	while (buffer && !atomic_load(&d->ending)) {
		turn(d, buffer, retry(d));
		now = ft_now_ns();
		if (now - flushed >= SECOND_NS) {
			log_lane_flush(&d->lane, now);
			flushed = now;
		}
	}
	log_lane_close(&d->lane, ft_now_ns());
	free(buffer);
	return NULL;
}

/* ---- the outside ---- */

static int make_consumers(struct deliveries *d, const int *fds)
{
	const struct deliveries_plan *plan = &d->plan;
	bool each = plan->kind == DELIVERY_PUBSUB || plan->kind == DELIVERY_STREAM;
	struct epoll_event wake = {.events = EPOLLIN};

	d->consumers = calloc(plan->consumers, sizeof(*d->consumers));
	d->seen = calloc(each ? plan->consumers : 1, sizeof(*d->seen));
	d->stats = stats_new(&plan->mix);
	for (uint32_t i = 0; i < plan->consumers; i++) {
		if (!d->consumers) {
			close(fds[i]);
			continue;
		}
		d->consumers[i] = (struct consumer){
		    .deliveries = d,
		    .state = CONSUMER_PREPARING,
		    .fd = fds[i],
		    .number = i,
		    .id = plan->first_id + i,
		    .seen = d->seen ? &d->seen[each ? i : 0] : NULL,
		    .opened_ns = ft_now_ns(),
		    .local_port = socket_local_port(fds[i]),
		    .retry_ns = PACING_NEVER,
		};
	}
	if (!d->consumers || !d->seen || !d->stats || d->epoll_fd < 0 || d->wake_fd < 0 ||
	    epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, d->wake_fd, &wake))
		return -ENOMEM;
	for (uint32_t i = 0; i < plan->consumers; i++)
		if (!admit(&d->consumers[i]) || !consumer_prepare(&d->consumers[i]))
			return -ENOMEM;
	return 0;
}

/* Until all consumers are ready: what is published before they are would be lost. */
static int get_ready(struct deliveries *d, char *error, size_t size)
{
	uint64_t give_up_ns = ft_now_ns() + READY_SECONDS * SECOND_NS;
	char *buffer = malloc(READ_AT_ONCE);
	int rc = buffer ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < d->plan.consumers && rc == 0; i++) {
		struct consumer *c = &d->consumers[i];

		if (c->awaited == 0) {
			c->state = CONSUMER_READY;
			d->ready++;
		}
		flush(c);
	}
	while (rc == 0 && d->ready < d->plan.consumers && d->how.broken == 0 && ft_now_ns() < give_up_ns)
		turn(d, buffer, 100);
	free(buffer);
	if (rc)
		return rc;
	if (d->ready == d->plan.consumers && d->how.broken == 0)
		return 0;
	snprintf(error, size, "%u of %u consumers could not begin: %s", d->plan.consumers - d->ready,
		 d->plan.consumers, d->how.why ? d->how.why : "the server did not answer them within 10 s");
	return -ECONNREFUSED;
}

int deliveries_start(struct deliveries **out, const struct deliveries_plan *plan, const int *fds, char *error,
		     size_t size)
{
	struct deliveries *d = calloc(1, sizeof(*d));
	int rc;

	*out = d;
	snprintf(error, size, "not enough memory for the consumers");
	if (!d) {
		for (uint32_t i = 0; i < plan->consumers; i++)
			close(fds[i]);
		return -ENOMEM;
	}
	d->plan = *plan;
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	d->measure_ns = UINT64_MAX; /* the start isn't known yet */
	pthread_mutex_init(&d->lock, NULL);
	log_lane_open(&d->lane, plan->log);
	rc = make_consumers(d, fds);
	if (rc == 0)
		rc = get_ready(d, error, size);
	for (uint32_t i = 0; i < plan->consumers && rc == 0; i++)
		log_connection(&d->consumers[i], false);
	if (rc == 0) {
		d->started = true;
		rc = -pthread_create(&d->handle, NULL, run_thread, d);
		d->started = rc == 0;
	}
	if (rc) {
		deliveries_free(d);
		*out = NULL;
	}
	return rc;
}

void deliveries_measure(struct deliveries *d, uint64_t measure_ns)
{
	pthread_mutex_lock(&d->lock);
	d->measure_ns = measure_ns;
	pthread_mutex_unlock(&d->lock);
}

void deliveries_take(struct deliveries *d, struct stats *into)
{
	pthread_mutex_lock(&d->lock);
	stats_merge(into, d->stats);
	stats_reset(d->stats);
	pthread_mutex_unlock(&d->lock);
}

static void stop_thread(struct deliveries *d)
{
	uint64_t one = 1;

	if (!d->started)
		return;
	atomic_store(&d->ending, true);
	(void)!write(d->wake_fd, &one, sizeof(one));
	pthread_join(d->handle, NULL);
	d->started = false;
}

void deliveries_end(struct deliveries *d, uint64_t acknowledged, uint64_t drain_ns,
		    const atomic_bool *abandon, struct delivered *how)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	uint64_t give_up_ns = ft_now_ns() + drain_ns;
	uint32_t each = d->plan.kind == DELIVERY_PUBSUB	  ? d->plan.consumers
			: d->plan.kind == DELIVERY_STREAM ? d->plan.consumers / d->plan.channels
							  : 1;

	while (atomic_load(&d->received) < acknowledged * each && ft_now_ns() < give_up_ns &&
	       !atomic_load(abandon))
		nanosleep(&pause, NULL);
	stop_thread(d);
	for (uint32_t i = 0; i < d->plan.consumers; i++)
		log_connection(&d->consumers[i], true);
	*how = d->how;
	how->log_drops = d->lane.all_drops;
	how->expected = acknowledged * each;
	how->received = atomic_load(&d->received);
}

void deliveries_free(struct deliveries *d)
{
	if (!d)
		return;
	stop_thread(d);
	log_lane_close(&d->lane, ft_now_ns());
	for (uint32_t i = 0; d->consumers && i < d->plan.consumers; i++) {
		let_go(&d->consumers[i]);
		free(d->consumers[i].out.at);
	}
	free(d->consumers);
	free(d->seen);
	stats_free(d->stats);
	if (d->epoll_fd >= 0)
		close(d->epoll_fd);
	if (d->wake_fd >= 0)
		close(d->wake_fd);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

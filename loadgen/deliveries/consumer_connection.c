/* SPDX-License-Identifier: MIT */
/* A consumer's connection: sends queued commands, receives replies, and reconnects. Commands are few and
 * small. Messages are parsed with the general parser, which takes some microseconds per message, after the
 * clock was read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer.h"
#include "recording/recording.h"

enum { BACKOFF_MAX_MS = 5000 };

static void on_readable(int fd, short what, void *arg);
static void on_writable(int fd, short what, void *arg);
static void on_retry(int fd, short what, void *arg);

static void watch(struct consumer *c)
{
	if (c->state == CONSUMER_CONNECTING || c->written < c->out.length)
		event_add(&c->writable, NULL);
	else
		event_del(&c->writable);
}

bool consumer_admit(struct consumer *c)
{
	struct event_base *base = c->deliveries->base;

	c->reader = redisReaderCreate();
	c->out.length = c->written = 0;
	c->greetings = 0;
	return c->reader &&
	       event_assign(&c->readable, base, c->fd, EV_READ | EV_PERSIST, on_readable, c) == 0 &&
	       event_assign(&c->writable, base, c->fd, EV_WRITE | EV_PERSIST, on_writable, c) == 0 &&
	       event_add(&c->readable, NULL) == 0;
}

void consumer_log(const struct consumer *c, bool ended)
{
	const struct deliveries_plan *plan = &c->deliveries->plan;
	struct ft_connection record = {
	    .opened_ns = c->opened_ns,
	    .closed_ns = ended && c->closed_ns == 0 ? ft_now_ns() : c->closed_ns,
	    .id = c->id,
	    .thread = plan->thread,
	    .local_port = c->local_port,
	    .inode = c->inode,
	};

	if (plan->log)
		ft_writer_record(request_log_writer(plan->log), FT_BLOCK_CONNECTION, &record);
}

static void try_later(struct consumer *c)
{
	struct timeval pause;

	c->backoff_ms = c->backoff_ms ? c->backoff_ms * 2 : c->deliveries->plan.backoff_ms;
	if (c->backoff_ms > BACKOFF_MAX_MS)
		c->backoff_ms = BACKOFF_MAX_MS;
	pause = (struct timeval){c->backoff_ms / 1000, c->backoff_ms % 1000 * 1000};
	evtimer_assign(&c->retry, c->deliveries->base, on_retry, c);
	event_add(&c->retry, &pause);
}

static void forget(struct event *e)
{
	if (event_initialized(e))
		event_del(e);
}

void consumer_close(struct consumer *c)
{
	if (c->state == CONSUMER_READY)
		c->deliveries->ready--;
	c->state = CONSUMER_CLOSED;
	forget(&c->readable);
	forget(&c->writable);
	forget(&c->retry);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	if (c->reader)
		redisReaderFree(c->reader);
	c->reader = NULL;
}

/* A connection broke or could not be reopened. */
static void fail(struct consumer *c, unsigned status, const char *why)
{
	struct deliveries *d = c->deliveries;
	uint64_t one = 1;

	consumer_close(c);
	c->closed_ns = ft_now_ns();
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

void consumer_flush(struct consumer *c)
{
	ssize_t n;

	while (c->written < c->out.length) {
		n = write(c->fd, c->out.at + c->written, c->out.length - c->written);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) {
			fail(c, FT_STATUS_RESET, strerror(errno));
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

static void on_retry(int unused_fd, short unused, void *arg)
{
	struct consumer *c = arg;
	const struct endpoint *e = &c->deliveries->plan.endpoint;
	bool pending;

	(void)unused_fd, (void)unused;
	c->fd = socket_begin(&e->socket, c->id, &pending);
	if (c->fd < 0) {
		fail(c, FT_STATUS_REFUSED, strerror(-c->fd));
		return;
	}
	c->state = CONSUMER_CONNECTING;
	c->closed_ns = 0;
	if (!consumer_admit(c) || !bytes_reserve(&c->out, e->greeting_bytes + 1)) {
		fail(c, FT_STATUS_REFUSED, "out of memory");
		return;
	}
	if (e->greeting_bytes)
		bytes_add(&c->out, e->greeting, e->greeting_bytes);
	c->greetings = e->greetings;
	if (!consumer_prepare(c)) {
		fail(c, FT_STATUS_REFUSED, "out of memory");
		return;
	}
	if (pending) {
		watch(c);
		return;
	}
	c->state = CONSUMER_PREPARING;
	consumer_flush(c);
}

static void on_connected(struct consumer *c)
{
	int rc = socket_result(c->fd);

	if (rc) {
		fail(c, FT_STATUS_REFUSED, strerror(-rc));
		return;
	}
	c->local_port = socket_local_port(c->fd);
	c->inode = socket_inode(c->fd);
	c->state = CONSUMER_PREPARING;
	consumer_flush(c);
}

static void on_writable(int unused_fd, short unused, void *arg)
{
	struct consumer *c = arg;

	(void)unused_fd, (void)unused;
	if (c->state == CONSUMER_CONNECTING)
		on_connected(c);
	else
		consumer_flush(c);
}

/* Handles all complete replies in the reader. Returns NULL, or why the connection is unusable. */
static const char *take_replies(struct consumer *c, uint64_t end_ns)
{
	const char *why = NULL;
	void *reply = NULL;

	pthread_mutex_lock(&c->deliveries->lock);
	while (!why) {
		if (redisReaderGetReply(c->reader, &reply) != REDIS_OK)
			why = "the server sent an invalid reply for this protocol";
		if (!reply)
			break;
		why = consumer_take_reply(c, reply, end_ns);
		freeReplyObject(reply);
	}
	pthread_mutex_unlock(&c->deliveries->lock);
	return why;
}

static void on_readable(int unused_fd, short unused, void *arg)
{
	struct consumer *c = arg;
	char *buffer = c->deliveries->buffer;
	const char *why;
	uint64_t now;
	ssize_t n;

	(void)unused_fd, (void)unused;
	if (c->state == CONSUMER_CONNECTING) {
		on_connected(c);
		return;
	}
	n = read(c->fd, buffer, READ_AT_ONCE);
	now = ft_now_ns();
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		fail(c, FT_STATUS_RESET, n == 0 ? "the server closed the connection" : strerror(errno));
		return;
	}
	if (redisReaderFeed(c->reader, buffer, (size_t)n) != REDIS_OK) {
		fail(c, FT_STATUS_WRONG, "out of memory");
		return;
	}
	why = take_replies(c, now);
	if (why) {
		fail(c, FT_STATUS_WRONG, why);
		return;
	}
	if (c->state == CONSUMER_PREPARING && c->greetings == 0 && c->awaited == 0) {
		c->state = CONSUMER_READY;
		c->deliveries->ready++;
	}
	if (c->out.length)
		consumer_flush(c);
}

/* SPDX-License-Identifier: MIT */
/* Consumers of messages, and their thread.
 *
 * A consumer's commands and how it handles the answers: SUBSCRIBE, BLPOP, XREAD, XREADGROUP. A stream is read
 * from its last entry at the start, by id instead of $, so that no entry is missed between two reads or
 * during a reconnect. */
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "loadgen/deliveries.h"
#include "recording/recording.h"

/* A consumer: its commands and answers, its connection, and how its messages are counted. struct deliveries
 * is shared by all consumers of the thread. */

/* Which of the last SEEN_NUMBERS message numbers were received already. */
enum { SEEN_NUMBERS = 1 << 16 };
struct seen {
	uint64_t highest; /* number + 1; 0: none yet */
	uint64_t bits[SEEN_NUMBERS / 64];
};

enum consumer_state { CONSUMER_CLOSED, CONSUMER_CONNECTING, CONSUMER_PREPARING, CONSUMER_READY };

struct consumer {
	struct deliveries *deliveries;
	enum consumer_state state;
	int fd;
	uint32_t number, id;
	uint32_t greetings; /* answers outstanding to AUTH and other greeting commands */
	uint32_t awaited;   /* answers outstanding to commands that prepare the consumer */
	redisReader *reader;
	struct bytes out;
	size_t written;
	struct event readable, writable;
	struct event retry; /* closed: when to reconnect */
	uint32_t backoff_ms;
	uint64_t opened_ns, closed_ns;
	uint64_t inode; /* of its socket */
	uint16_t local_port;
	char last_id[48];  /* of a stream's entries */
	struct seen *seen; /* pub/sub, streams: its own; otherwise shared by all consumers */
};

struct deliveries {
	struct deliveries_plan plan;
	struct consumer *consumers;
	struct seen *seen;
	uint32_t ready;
	struct event_base *base;
	struct event wake, tick;
	int wake_fd;
	char *buffer; /* READ_AT_ONCE bytes */
	pthread_t handle;
	bool started;
	atomic_uint_fast64_t received; /* counted in the figures */
	struct log_lane lane;
	pthread_mutex_t lock; /* for the fields below */
	uint64_t measure_ns;
	struct stats *stats;
	struct delivery_counts how;
};

enum { READ_AT_ONCE = 64 << 10 };

/* A message arrived. The lock is held. */
static void take_message(struct consumer *c, const redisReply *payload, uint64_t end_ns);

/* Queues the commands that prepare the consumer, after `greeting_bytes` of greetings that are queued
 * already. */
static bool consumer_prepare(struct consumer *c);
/* Queues the command that waits for the next message (lists and streams). */
static bool consumer_ask(struct consumer *c);
/* A complete reply arrived. Returns NULL, or why the connection is unusable. */
static const char *consumer_take_reply(struct consumer *c, const redisReply *r, uint64_t end_ns);

/* Adds an open descriptor to this event loop. False: out of memory. */
static bool consumer_admit(struct consumer *c);
/* Writes queued bytes until the socket is full. */
static void consumer_flush(struct consumer *c);
/* Closes its connection permanently. */
static void consumer_close(struct consumer *c);
/* Logs its connection. */
static void consumer_log(const struct consumer *c, bool ended);

#define GROUP "forktail"

static bool queue(struct consumer *c, int count, const char **words, const size_t *lengths)
{
	char *text = NULL;
	long long n = redisFormatCommandArgv(&text, count, words, lengths);
	bool good = n > 0 && bytes_reserve(&c->out, (size_t)n);

	if (good)
		bytes_add(&c->out, text, (size_t)n);
	if (text)
		redisFreeCommand(text);
	return good;
}

/* Words are text. NULL is replaced by the name of this consumer's key. */
static bool say(struct consumer *c, int count, const char *const *words)
{
	const struct key_names *names = &c->deliveries->plan.workload->names;
	uint64_t number = c->number % c->deliveries->plan.options->channels;
	uint32_t length = key_name_length(names, number);
	char *name = malloc(length);
	const char *texts[16];
	size_t lengths[16];
	bool good = name != NULL;

	if (name)
		key_name_write(names, number, name, length);
	for (int i = 0; i < count; i++) {
		texts[i] = words[i] ? words[i] : name;
		lengths[i] = words[i] ? strlen(words[i]) : length;
	}
	good = good && queue(c, count, texts, lengths);
	free(name);
	return good;
}

/* One SUBSCRIBE per channel, because each channel gets its own answer in any case. */
static bool subscribe(struct consumer *c)
{
	const struct deliveries_plan *plan = &c->deliveries->plan;
	const struct key_names *names = &plan->workload->names;
	bool good = true;

	for (uint32_t i = 0; i < plan->options->channels && good; i++) {
		uint32_t length = key_name_length(names, i);
		char *name = malloc(length);
		const char *words[2] = {"SUBSCRIBE", name};
		const size_t lengths[2] = {9, length};

		if (name)
			key_name_write(names, i, name, length);
		good = name && queue(c, 2, words, lengths);
		free(name);
	}
	c->awaited = plan->options->channels;
	return good;
}

static bool consumer_ask(struct consumer *c)
{
	char name[16];

	snprintf(name, sizeof(name), "c%u", c->number);
	switch (c->deliveries->plan.options->delivery) {
	case DELIVERY_LIST:
		return say(c, 3, (const char *const[]){"BLPOP", NULL, "0"});
	case DELIVERY_STREAM:
		return say(c, 6, (const char *const[]){"XREAD", "BLOCK", "0", "STREAMS", NULL, c->last_id});
	case DELIVERY_GROUP:
		return say(c, 10,
			   (const char *const[]){"XREADGROUP", "GROUP", GROUP, name, "NOACK", "BLOCK", "0",
						 "STREAMS", NULL, ">"});
	case DELIVERY_PUBSUB:
	case DELIVERY_NONE:
		break;
	}
	return true;
}

static bool consumer_prepare(struct consumer *c)
{
	c->awaited = 0;
	switch (c->deliveries->plan.options->delivery) {
	case DELIVERY_PUBSUB:
		return subscribe(c);
	case DELIVERY_STREAM:
		if (c->last_id[0])
			break; /* reconnected */
		c->awaited = 1;
		return say(c, 6, (const char *const[]){"XREVRANGE", NULL, "+", "-", "COUNT", "1"});
	case DELIVERY_GROUP:
		c->awaited = 1;
		return say(c, 6, (const char *const[]){"XGROUP", "CREATE", NULL, GROUP, "$", "MKSTREAM"});
	case DELIVERY_LIST:
	case DELIVERY_NONE:
		break;
	}
	return consumer_ask(c);
}

static bool is_list(const redisReply *r)
{
	return r->type == REDIS_REPLY_ARRAY;
}

static bool is_text(const redisReply *r, const char *text)
{
	return r->type == REDIS_REPLY_STRING && strcasecmp(r->str, text) == 0;
}

/* [id, [field, message]] */
static void take_entry(struct consumer *c, const redisReply *entry, uint64_t end_ns)
{
	if (!is_list(entry) || entry->elements != 2 || entry->element[0]->type != REDIS_REPLY_STRING)
		return;
	snprintf(c->last_id, sizeof(c->last_id), "%s", entry->element[0]->str);
	if (is_list(entry->element[1]) && entry->element[1]->elements >= 2)
		take_message(c, entry->element[1]->element[1], end_ns);
}

/* [[key, [entry, ...]]] */
static bool take_entries(struct consumer *c, const redisReply *r, uint64_t end_ns)
{
	const redisReply *of_key;

	if (r->elements != 1 || !is_list(r->element[0]))
		return false;
	of_key = r->element[0];
	if (of_key->elements != 2 || !is_list(of_key->element[1]))
		return false;
	for (size_t i = 0; i < of_key->element[1]->elements; i++)
		take_entry(c, of_key->element[1]->element[i], end_ns);
	return true;
}

/* An answer to a command that prepares the consumer. */
static const char *take_setup_reply(struct consumer *c, const redisReply *r)
{
	enum delivery_kind kind = c->deliveries->plan.options->delivery;

	if (r->type == REDIS_REPLY_ERROR && !(kind == DELIVERY_GROUP && strncmp(r->str, "BUSYGROUP", 9) == 0))
		return "the server refused a consumer's first command";
	if (kind == DELIVERY_PUBSUB &&
	    !(is_list(r) && r->elements == 3 && is_text(r->element[0], "subscribe")))
		return "unexpected answer to SUBSCRIBE";
	if (kind == DELIVERY_STREAM) {
		bool some = is_list(r) && r->elements == 1 && is_list(r->element[0]) &&
			    r->element[0]->elements == 2 &&
			    r->element[0]->element[0]->type == REDIS_REPLY_STRING;
		snprintf(c->last_id, sizeof(c->last_id), "%s", some ? r->element[0]->element[0]->str : "0-0");
	}
	if (--c->awaited == 0 && !consumer_ask(c))
		return "out of memory";
	return NULL;
}

static const char *consumer_take_reply(struct consumer *c, const redisReply *r, uint64_t end_ns)
{
	enum delivery_kind kind = c->deliveries->plan.options->delivery;

	if (c->greetings) {
		bool name = --c->greetings == 0 && c->deliveries->plan.endpoint.named;

		return r->type == REDIS_REPLY_ERROR && !name
			   ? "the server refused the login of a reconnected consumer"
			   : NULL;
	}
	/* A message may arrive between the answers to two SUBSCRIBEs. */
	if (kind == DELIVERY_PUBSUB && is_list(r) && r->elements == 3 && is_text(r->element[0], "message")) {
		take_message(c, r->element[2], end_ns);
		return NULL;
	}
	if (c->awaited)
		return take_setup_reply(c, r);
	if (r->type == REDIS_REPLY_ERROR)
		return "the server refused a consumer's command";
	switch (kind) {
	case DELIVERY_LIST:
		if (is_list(r) && r->elements == 2)
			take_message(c, r->element[1], end_ns);
		else if (r->type != REDIS_REPLY_NIL)
			return "unexpected answer to BLPOP";
		break;
	case DELIVERY_STREAM:
	case DELIVERY_GROUP:
		if (r->type != REDIS_REPLY_NIL && !(is_list(r) && take_entries(c, r, end_ns)))
			return "unexpected answer to a read of a stream";
		break;
	case DELIVERY_PUBSUB:
	case DELIVERY_NONE:
		return "a subscriber received something that is not a message";
	}
	return consumer_ask(c) ? NULL : "out of memory";
}

/* A consumer's connection: sends queued commands, receives replies, and reconnects. Commands are few and
 * small. Messages are parsed with the general parser, which takes some microseconds per message, after the
 * clock was read. */

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

static bool consumer_admit(struct consumer *c)
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

static void consumer_log(const struct consumer *c, bool ended)
{
	const struct deliveries_plan *plan = &c->deliveries->plan;
	struct ft_connection record = {
	    .opened_ns = c->opened_ns,
	    .closed_ns = ended && c->closed_ns == 0 ? ft_now_ns() : c->closed_ns,
	    .id = c->id,
	    .thread = plan->options->threads,
	    .local_port = c->local_port,
	    .inode = c->inode,
	};

	if (plan->log)
		ft_writer_record(request_log_writer(plan->log), FT_BLOCK_CONNECTION, &record);
}

static void try_later(struct consumer *c)
{
	struct timeval pause;

	c->backoff_ms = c->backoff_ms ? c->backoff_ms * 2 : c->deliveries->plan.options->backoff_ms;
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

static void consumer_close(struct consumer *c)
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
	if (d->plan.options->on_error == ON_ERROR_RECONNECT)
		try_later(c);
	if (d->started && d->plan.options->on_error == ON_ERROR_STOP &&
	    !atomic_exchange(d->plan.stop, true)) {
		atomic_store(d->plan.gave_up, true);
		(void)!write(d->plan.done_fd, &one, sizeof(one));
	}
}

static void consumer_flush(struct consumer *c)
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

/* The consumers' thread. The load starts when every consumer is ready, because earlier messages would be
 * lost. The thread ends when all acknowledged messages have arrived or its time is up. Its counters are
 * protected by a lock that no load thread takes. */

#define SECOND_NS 1000000000ull
enum { READY_SECONDS = 10 };

static void on_wake(int unused_fd, short unused, void *arg)
{
	struct deliveries *d = arg;

	(void)unused_fd, (void)unused;
	event_base_loopbreak(d->base);
}

static void on_second(int unused_fd, short unused, void *arg)
{
	struct deliveries *d = arg;

	(void)unused_fd, (void)unused;
	log_lane_flush(&d->lane, ft_now_ns());
}

/* Only used to wait for this time. */
static void on_patience_end(int unused_fd, short unused, void *arg)
{
	(void)unused_fd, (void)unused, (void)arg;
}

static void *run_thread(void *arg)
{
	static const struct timeval second = {.tv_sec = 1};
	struct deliveries *d = arg;

	pthread_setname_np(pthread_self(), "consumers");
	prctl(PR_SET_TIMERSLACK, 1ul);
	if (event_assign(&d->tick, d->base, -1, EV_PERSIST, on_second, d) == 0)
		event_add(&d->tick, &second);
	event_base_dispatch(d->base);
	log_lane_close(&d->lane, ft_now_ns());
	return NULL;
}

/* ---- interface ---- */

static int make_consumers(struct deliveries *d, const int *fds)
{
	const struct deliveries_plan *plan = &d->plan;
	bool each = plan->options->delivery == DELIVERY_PUBSUB || plan->options->delivery == DELIVERY_STREAM;

	d->consumers = calloc(plan->options->consumers, sizeof(*d->consumers));
	d->seen = calloc(each ? plan->options->consumers : 1, sizeof(*d->seen));
	d->stats = stats_new(&plan->mix);
	for (uint32_t i = 0; i < plan->options->consumers; i++) {
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
		    .inode = socket_inode(fds[i]),
		    .local_port = socket_local_port(fds[i]),
		};
	}
	if (!d->consumers || !d->seen || !d->stats || !d->buffer || !d->base || d->wake_fd < 0 ||
	    event_assign(&d->wake, d->base, d->wake_fd, EV_READ, on_wake, d) || event_add(&d->wake, NULL))
		return -ENOMEM;
	for (uint32_t i = 0; i < plan->options->consumers; i++)
		if (!consumer_admit(&d->consumers[i]) || !consumer_prepare(&d->consumers[i]))
			return -ENOMEM;
	return 0;
}

/* Waits until all consumers are ready: messages published before that would be lost. */
static int get_ready(struct deliveries *d, char *error, size_t size)
{
	const struct timeval patience = {.tv_sec = READY_SECONDS};
	uint64_t give_up_ns = ft_now_ns() + READY_SECONDS * SECOND_NS;
	struct event end;

	for (uint32_t i = 0; i < d->plan.options->consumers; i++) {
		struct consumer *c = &d->consumers[i];

		if (c->awaited == 0) {
			c->state = CONSUMER_READY;
			d->ready++;
		}
		consumer_flush(c);
	}
	if (evtimer_assign(&end, d->base, on_patience_end, NULL) || event_add(&end, &patience))
		return -ENOMEM;
	while (d->ready < d->plan.options->consumers && d->how.broken == 0 && ft_now_ns() < give_up_ns)
		event_base_loop(d->base, EVLOOP_ONCE);
	event_del(&end);
	if (d->ready == d->plan.options->consumers && d->how.broken == 0)
		return 0;
	snprintf(error, size, "%u of %u consumers could not start: %s", d->plan.options->consumers - d->ready,
		 d->plan.options->consumers,
		 d->how.why ? d->how.why : "no answer from the server within 10 s");
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
		for (uint32_t i = 0; i < plan->options->consumers; i++)
			close(fds[i]);
		return -ENOMEM;
	}
	d->plan = *plan;
	d->base = event_base_new();
	d->buffer = malloc(READ_AT_ONCE);
	d->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	d->measure_ns = UINT64_MAX; /* the start isn't known yet */
	pthread_mutex_init(&d->lock, NULL);
	log_lane_open(&d->lane, plan->log);
	rc = make_consumers(d, fds);
	if (rc == 0)
		rc = get_ready(d, error, size);
	for (uint32_t i = 0; i < plan->options->consumers && rc == 0; i++)
		consumer_log(&d->consumers[i], false);
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
	(void)!write(d->wake_fd, &one, sizeof(one));
	pthread_join(d->handle, NULL);
	d->started = false;
}

void deliveries_end(struct deliveries *d, uint64_t acknowledged, uint64_t drain_ns,
		    const atomic_bool *abandon, struct delivery_counts *how)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	uint64_t give_up_ns = ft_now_ns() + drain_ns;
	uint32_t each = d->plan.options->delivery == DELIVERY_PUBSUB ? d->plan.options->consumers
			: d->plan.options->delivery == DELIVERY_STREAM
			    ? d->plan.options->consumers / d->plan.options->channels
			    : 1;

	while (atomic_load(&d->received) < acknowledged * each && ft_now_ns() < give_up_ns &&
	       !atomic_load(abandon))
		nanosleep(&pause, NULL);
	stop_thread(d);
	for (uint32_t i = 0; i < d->plan.options->consumers; i++)
		consumer_log(&d->consumers[i], true);
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
	for (uint32_t i = 0; d->consumers && i < d->plan.options->consumers; i++) {
		consumer_close(&d->consumers[i]);
		free(d->consumers[i].out.at);
	}
	free(d->consumers);
	free(d->seen);
	stats_free(d->stats);
	free(d->buffer);
	if (d->base)
		event_base_free(d->base);
	if (d->wake_fd >= 0)
		close(d->wake_fd);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* How an incoming message is counted: a delivery with its latency, a duplicate, or an unrelated message. */

/* True the first time for a number, and for numbers too old to check. */
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

static void take_message(struct consumer *c, const redisReply *payload, uint64_t end_ns)
{
	struct deliveries *d = c->deliveries;
	struct ft_request q = {
	    .end_ns = end_ns,
	    .connection = c->id,
	    .op = d->plan.workload->delivery,
	    .status = FT_STATUS_OK,
	};
	struct stamp s;

	c->backoff_ms = 0;
	if (payload->type != REDIS_REPLY_STRING ||
	    !stamp_read(payload->str, payload->len, d->plan.workload->stamps->run, &s)) {
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
		stats_add(d->stats, q.op, q.status, end_ns - q.intended_ns, payload->len, 1);
		d->stats->last_end_ns = end_ns;
		atomic_fetch_add(&d->received, 1);
	}
	if (end_ns - q.intended_ns >= d->plan.log_over_ns)
		log_append(&d->lane, &q, 1);
}

/* SPDX-License-Identifier: MIT */
/* The helper process that finds requests: it joins what was read and written to requests with answers. */
#include <bpf/libbpf.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bpf/request_events.h"
#include "loader/requests.h"
#include "loader/system.h"
#include "recording/recording.h"

/* The table is indexed by the low bits of a connection's number: numbers are given in turn, so two
 * connections share a place only if 65,536 others were opened in between. The newer one takes it. */

/* Whether an answer is an error, by its first bytes. */

/* Returns whether the bytes are the begin of an answer of Redis or memcached; then *status is FT_STATUS_OK,
 * FT_STATUS_MISS (no such key) or FT_STATUS_ERROR_REPLY. */
static bool outcome_of(const uint8_t begin[FT_ANSWER_BEGIN], uint8_t *status);

/* Shared by the parts of the matcher: what is known of a connection. matcher.c follows its stream; answers.c
 * keeps the requests that were read and the writes since, until it is known which write answers which. */

enum {
	MATCHER_TARGETS = 1024,
	WRITES_MAX = 256, /* of a group of requests, kept one by one */
};

enum sync {
	SYNC_LOST, /* the position in the stream of requests is unknown, until the connection is idle */
	SYNC_FOLLOWED,
	SYNC_EXCHANGES, /* the bytes are not readable (TLS): what is read until a write is one request */
	SYNC_REST,	/* likewise, because it has many arguments, of which some were not captured */
};

/* Whether the server has more to write of the answers to what it read. */
enum backlog {
	BACKLOG_NONE,
	BACKLOG_POSSIBLE, /* a large write may not be the last one */
	BACKLOG_CERTAIN,  /* the socket's buffer is full */
};

struct pending {
	uint64_t arrival_ns, read_ns;
	uint64_t hash;
	uint32_t bytes, tid;
	uint8_t command;
	bool unarrived;
	bool left_out;	 /* it blocks, or is behind one that does: it only takes part in the matching */
	uint8_t text_as; /* enum scan_text: it has a text in `texts` */
};

/* A request's text. */
struct pending_text {
	uint8_t bytes, text[SCAN_TEXT];
};

struct answer_write {
	uint64_t t_ns, left_ns;
	uint32_t bytes;
	uint8_t begin[FT_ANSWER_BEGIN];
};

struct client_stream {
	uint32_t id, tgid;
	struct ft_request_connection opened;
	struct scanner scanner;
	uint8_t sync;
	bool announced;	 /* the recorder knows it */
	uint8_t backlog; /* enum backlog */
	bool asynchronous, proxy, begun;
	bool pushes;	 /* what is written answers no request */
	bool pushed;	 /* messages may be written after an answer */
	bool wrote;	 /* since the last read */
	bool multi;	 /* between MULTI and EXEC nothing blocks */
	uint32_t queued; /* commands since MULTI */
	bool blocked;	 /* a command that may wait for data is pending */
	bool overlaps;	 /* the client has sent a request before it had the answer to another */
	bool unknown;	 /* requests that are not known may be pending, too */
	bool large;	 /* of the writes since all was answered, one was not the last of its answer */
	bool unproved;	 /* nothing since it was found again was a known command */
	uint64_t arguments, line_bytes; /* in SYNC_REST, of the request: as of scanner_arguments() */
	uint16_t sequence;		/* of the next event */
	uint32_t offset;		/* of the stream, scanned so far */
	uint32_t begin;			/* where the request that is being scanned began */
	uint64_t last_write_ns;		/* the last write of all */
	uint64_t now_ns;		/* of the read that is being scanned */
	uint32_t tid;
	struct ft_request_arrival *arrivals;
	size_t arrival_count, arrivals_room;
	uint64_t begin_arrival_ns; /* of the request that is being scanned; 0: unknown */
	struct pending *pending;
	size_t pending_count, pending_room;
	struct pending_text *texts; /* by the place of a pending request that has one */
	size_t texts_room;
	struct answer_write *writes;
	size_t writes_room;
	uint32_t write_count;					/* may be more than are kept */
	struct answer_write last;				/* the last one */
	uint64_t answer_bytes;					/* of all */
	struct client_stream *next_answered, **answered_before; /* in the list of those with writes */
};

struct matcher {
	request_handler handler;
	void *context;
	struct client_stream *table[FT_REQUESTS_SLOTS_MAX];
	struct client_stream *answered; /* connections with writes that are not complete */
	struct request_target targets[MATCHER_TARGETS];
	size_t target_count;
	size_t pending_room; /* of all connections */
	uint8_t ping, unsubscribe, exec;
	uint64_t counts[REQUEST_COUNTS];
	struct proxied *proxied;	 /* once there is a proxy among the targets */
	uint64_t keys_second, keys_sent; /* the current second, and keys that were sent in it */
};

/* A request that ended at the offset was read. False: it, and what was pending, is lost. */
static bool client_stream_add(struct matcher *m, struct client_stream *c, uint8_t command, uint64_t hash,
			      uint32_t end);
/* There are writes since: the connection is in the matcher's list. */
static void client_stream_written(struct matcher *m, struct client_stream *c);
/* All that is pending was answered by the writes since. */
static void client_stream_complete(struct matcher *m, struct client_stream *c);
/* From here on the position in the stream is unknown. What is pending is known. */
static void client_stream_leave(struct matcher *m, struct client_stream *c);
/* Likewise, and which write answers what is pending is not known either. */
static void client_stream_lose(struct matcher *m, struct client_stream *c);
/* Events are missing from here on. An answer that was one write is complete; of several requests or large
 * answers, later writes may be among those events. */
static void client_stream_lose_after_gap(struct matcher *m, struct client_stream *c);
/* Returns the memory of a connection with nothing pending. */
static void client_stream_release(struct matcher *m, struct client_stream *c);
static void client_stream_free(struct matcher *m, struct client_stream *c);

enum {
	/* After a write of this size, Redis serves other clients before it writes the rest. */
	WRITE_LARGE = 65536,
	ARRIVALS_MAX = 2 * FT_ARRIVALS,
	KEYS_PER_SECOND = 200,
};
#define KEY_SLOW_NS 1000000ull
/* An answer is complete this long after its last write if nothing else is read. */
#define COMPLETE_NS 100000000ull
/* Likewise, if the server may have more to write and the client is slow. */
#define COMPLETE_LARGE_NS 10000000000ull

struct matcher *matcher_open(request_handler handler, void *context)
{
	struct matcher *m = calloc(1, sizeof *m);
	if (m) {
		m->handler = handler;
		m->context = context;
		m->ping = (uint8_t)commands_find("PING", 4);
		m->unsubscribe = (uint8_t)commands_find("UNSUBSCRIBE", 11);
		m->exec = (uint8_t)commands_find("EXEC", 4);
	}
	return m;
}

static void forget(struct matcher *m, struct client_stream *c)
{
	m->table[c->id % FT_REQUESTS_SLOTS_MAX] = NULL;
	client_stream_free(m, c);
}

void matcher_close(struct matcher *m)
{
	for (size_t i = 0; m && i < FT_REQUESTS_SLOTS_MAX; i++)
		if (m->table[i])
			forget(m, m->table[i]);
	if (m)
		proxied_close(m->proxied);
	free(m);
}

static const struct request_target *target_of(const struct matcher *m, uint32_t tgid)
{
	for (size_t i = 0; i < m->target_count; i++)
		if (m->targets[i].tgid == tgid)
			return &m->targets[i];
	return NULL;
}

void matcher_target(struct matcher *m, const struct request_target *target)
{
	if (target->proxy && !m->proxied)
		m->proxied = proxied_open(m->handler, m->context);
	struct request_target *known = (struct request_target *)target_of(m, target->tgid);
	if (known)
		*known = *target;
	else if (m->target_count < MATCHER_TARGETS)
		m->targets[m->target_count++] = *target;
}

static void restart_scanner(struct matcher *m, struct client_stream *c)
{
	const struct request_target *t = target_of(m, c->tgid);
	c->scanner = (struct scanner){
	    .protocol = t ? t->protocol : SCAN_EITHER, .replies = c->scanner.replies, .lost = c->begun};
	c->asynchronous = t && t->asynchronous;
	c->proxy = t && t->proxy;
}

/* When the byte at an offset arrived; 0: unknown. */
static uint64_t arrival_of(const struct client_stream *c, uint32_t offset)
{
	for (size_t i = 0; i < c->arrival_count; i++) {
		const struct ft_request_arrival *a = &c->arrivals[i];
		if ((int32_t)(a->end - offset) <= 0)
			continue;
		if ((int32_t)(a->first_end - offset) > 0 || a->end == a->first_end)
			return a->first_ns;
		double part = (double)(offset - a->first_end) / (double)(a->end - a->first_end);
		return a->first_ns + (uint64_t)(part * (double)(a->last_ns - a->first_ns));
	}
	return 0;
}

/* Pieces before the offset are not needed any more. */
static void drop_arrivals(struct client_stream *c, uint32_t offset)
{
	size_t from = 0;
	while (from < c->arrival_count && (int32_t)(c->arrivals[from].end - offset) <= 0)
		from++;
	if (!from)
		return;
	c->arrival_count -= from;
	memmove(c->arrivals, c->arrivals + from, c->arrival_count * sizeof *c->arrivals);
}

/* A piece that was read only in part comes again with the next read, perhaps longer. */
static void add_arrivals(struct client_stream *c, const struct ft_request_arrival *more, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct ft_request_arrival *last =
		    c->arrival_count ? &c->arrivals[c->arrival_count - 1] : NULL;
		if (last && last->first_ns == more[i].first_ns && last->first_end == more[i].first_end)
			*last = more[i];
		else if (last && (int32_t)(more[i].end - last->end) <= 0)
			continue;
		else if (c->arrival_count < ARRIVALS_MAX &&
			 grow(&c->arrivals, &c->arrivals_room, c->arrival_count, sizeof *c->arrivals))
			c->arrivals[c->arrival_count++] = more[i];
	}
}

static void begin_request(struct client_stream *c, uint32_t offset)
{
	c->begin = offset;
	c->begin_arrival_ns = arrival_of(c, offset);
}

/* Whether a request is one of a connection that gets messages without asking, and its answer one of them. A
 * subscriber may send few other commands, so these say that it is none any more. */
static bool is_subscribers(const struct matcher *m, struct client_stream *c, const struct scanned *s)
{
	if (s->flags & (SCANNED_PUSHES | SCANNED_TRACKING))
		c->pushed = true;
	if (s->flags & SCANNED_PUSHES)
		c->pushes = true;
	else if (s->command != m->ping && s->command != m->unsubscribe && s->command != COMMAND_OTHER)
		c->pushes = false;
	return c->pushes;
}

/* Counts the commands of a transaction. The server runs them all at EXEC, which stalls other clients. */
static void follow_transaction(struct matcher *m, struct client_stream *c, const struct scanned *s)
{
	if (c->multi && s->command == m->exec && c->queued >= TRANSACTION_LARGE) {
		const struct request_message message = {
		    .kind = MESSAGE_TRANSACTION,
		    .connection = c->id,
		    .transaction = {.read_ns = c->now_ns, .commands = c->queued, .tid = c->tid}};
		m->handler(m->context, &message);
	}
	c->queued = c->multi ? c->queued + 1 : 0;
	c->multi = (c->multi || s->flags & SCANNED_MULTI) && !(s->flags & SCANNED_EXEC);
}

/* Reports a request that is large by its number of arguments, which it has just ended. */
static void note_arguments(struct matcher *m, const struct client_stream *c, uint8_t command, uint64_t count,
			   bool estimated)
{
	const struct request_message message = {.kind = MESSAGE_ARGUMENTS,
						.connection = c->id,
						.arguments = {.read_ns = c->now_ns,
							      .count = count,
							      .tid = c->tid,
							      .command = command,
							      .estimated = estimated}};
	/* The least of an argument is "$0\r\n\r\n" or a blank and a letter: more is only what a header
	 * claims. */
	if (count >= ARGUMENTS_MANY && count <= (c->offset - c->begin) / 2)
		m->handler(m->context, &message);
}

/* Keeps the text of the request that was added last. Without memory, it has none. What a transaction sets is
 * not followed. */
static void keep_text(struct client_stream *c, const struct scanned *s)
{
	const size_t at = c->pending_count - 1;
	if ((c->multi && s->text_as != TEXT_KEY) ||
	    !grow_to(&c->texts, &c->texts_room, at + 1, sizeof *c->texts))
		return;
	c->texts[at].bytes = s->text_bytes;
	memcpy(c->texts[at].text, s->text, sizeof c->texts[at].text);
	c->pending[at].text_as = s->text_as;
}

static void request_ended(struct matcher *m, struct client_stream *c, const struct scanned *s)
{
	if (c->unproved && s->command == COMMAND_OTHER) { /* more likely the middle of a value */
		client_stream_lose(m, c);
		return;
	}
	c->unproved = false;
	if (is_subscribers(m, c, s)) {
		m->counts[COUNT_PUSHES]++;
	} else if (s->flags & SCANNED_NO_REPLY) {
		m->counts[COUNT_NO_REPLY]++;
	} else {
		/* A blocking command is answered when there is data. What follows waits for that. */
		c->blocked |= s->flags & SCANNED_BLOCKING && !c->multi;
		m->counts[COUNT_BLOCKING] += c->blocked;
		if (client_stream_add(m, c, s->command, s->hash, c->offset) && s->text_as)
			keep_text(c, s);
		note_arguments(m, c, s->command, s->arguments, false);
	}
	follow_transaction(m, c, s);
	begin_request(c, c->offset);
}

/* Scans bytes that were captured. */
static void scan(struct matcher *m, struct client_stream *c, const uint8_t *at, uint32_t bytes)
{
	const uint8_t *end = at + bytes;
	while (at < end && c->sync == SYNC_FOLLOWED) {
		struct scanned s;
		const uint8_t *from = at;
		int result = scanner_bytes(&c->scanner, &at, end, &s);
		c->offset += (uint32_t)(at - from);
		if (result > 0)
			request_ended(m, c, &s);
		else if (result < 0)
			client_stream_lose(m, c);
		else
			return;
	}
	c->offset += (uint32_t)(end - at);
}

/* A request with many arguments continues where bytes were not captured. A synchronous server that has
 * nothing else to answer writes when it has read all of it. Of what follows in the last read nothing is
 * known. */
static bool begin_rest(struct client_stream *c, const struct scanner *scanner)
{
	c->arguments = scanner_arguments(scanner, &c->line_bytes);
	if (c->asynchronous || c->multi || c->pushes || c->pending_count || c->arguments < ARGUMENTS_MANY)
		return false;
	c->scanner = *scanner;
	c->sync = SYNC_REST;
	return true;
}

static void end_rest(struct matcher *m, struct client_stream *c)
{
	const uint8_t command = c->scanner.command;
	const uint64_t bytes = c->offset - c->begin, line = c->line_bytes;

	c->sync = SYNC_LOST;
	client_stream_add(m, c, command, 0, c->offset);
	note_arguments(m, c, command, line ? c->arguments * bytes / line : c->arguments, line > 0);
}

/* Skips bytes that were not captured. The request that is being scanned may end among them, but what follows
 * it is unknown. */
static void scan_gap(struct matcher *m, struct client_stream *c, uint32_t bytes)
{
	struct scanned s;
	const uint32_t end = c->offset + bytes;
	const uint64_t left = c->sync == SYNC_FOLLOWED ? scanner_left(&c->scanner) : 0;
	const uint32_t skipped = left && left < bytes ? (uint32_t)left : bytes;

	c->offset += skipped;
	if (c->sync != SYNC_FOLLOWED)
		return;
	const struct scanner before = c->scanner;
	int result = scanner_gap(&c->scanner, skipped, &s);
	if (result > 0)
		request_ended(m, c, &s);
	if (result < 0 ? !begin_rest(c, &before) : skipped < bytes)
		client_stream_leave(m, c);
	c->offset = end;
}

static bool is_tls(const uint8_t *at, uint32_t bytes)
{
	enum { HANDSHAKE = 22, VERSION = 3 };
	return bytes >= 2 && at[0] == HANDSHAKE && at[1] == VERSION;
}

/* Whether a read begins where all earlier requests have been answered. */
static bool is_idle(const struct client_stream *c, uint32_t begin)
{
	const uint64_t arrival_ns = arrival_of(c, begin);
	if (!arrival_ns || c->pending_count || c->backlog != BACKLOG_NONE)
		return false;
	return !c->begun || arrival_ns > c->last_write_ns || (!c->asynchronous && c->wrote);
}

/* Whether a read looks like inline commands of Redis. In the middle of a connection other text does, too. */
static bool is_lines(const uint8_t *at, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		if ((at[i] < ' ' && at[i] != '\r' && at[i] != '\n') || at[i] >= 127)
			return false;
	return bytes && at[bytes - 1] == '\n';
}

/* A connection whose position is unknown may begin again when all is answered, with what looks like a
 * request. */
static void find_again(struct matcher *m, struct client_stream *c, const struct ft_request_read *e,
		       const uint8_t *at)
{
	if (!is_idle(c, c->offset))
		return;
	restart_scanner(m, c);
	c->unproved = true;
	if (is_tls(at, e->captured) || e->flags & FT_READ_UNREADABLE)
		c->sync = SYNC_EXCHANGES;
	else if (e->captured && (scanner_may_begin((enum scan_protocol)c->scanner.protocol, at[0]) ||
				 (!c->begun && is_lines(at, e->captured))))
		c->sync = SYNC_FOLLOWED;
	begin_request(c, c->offset);
}

/* Whether the writes so far have answered all that is pending, at a read from an offset. */
static bool is_answered(const struct client_stream *c, uint32_t begin)
{
	if (!c->write_count)
		return false;
	if (!c->asynchronous && c->backlog == BACKLOG_NONE)
		return true;
	/* A client that waits for answers may have the last one before write() returned. */
	const uint64_t left_ns = !c->overlaps && c->last.left_ns ? c->last.left_ns : c->last.t_ns;
	return c->backlog != BACKLOG_CERTAIN && arrival_of(c, begin) > left_ns;
}

static void on_read(struct matcher *m, struct client_stream *c, const struct ft_request_read *e,
		    const uint8_t *bytes)
{
	const uint32_t begin = e->end - e->bytes;
	if (e->arrivals <= FT_READ_ARRIVALS)
		add_arrivals(c, e->arrival, e->arrivals);
	c->now_ns = e->head.t_ns;
	c->tid = e->tid;
	if (begin != c->offset) { /* bytes before it are missing */
		client_stream_lose(m, c);
		c->offset = begin;
	}
	drop_arrivals(c, begin);
	if (is_answered(c, begin))
		client_stream_complete(m, c);
	if (c->sync == SYNC_LOST && !(e->flags & FT_READ_CONTINUES))
		find_again(m, c, e, bytes);
	if (c->begun && c->sync == SYNC_LOST)
		m->counts[COUNT_LOST]++;
	c->begun = true;
	c->wrote = false;
	if (c->sync == SYNC_EXCHANGES) {
		c->offset = e->end;
		if (!c->pending_count) {
			begin_request(c, begin);
			client_stream_add(m, c, COMMAND_UNKNOWN, 0, e->end);
		} else {
			c->pending[0].read_ns = c->now_ns;
			c->pending[0].bytes += e->bytes;
		}
		return;
	}
	if (c->begin == begin && !c->begin_arrival_ns)
		c->begin_arrival_ns = arrival_of(c, begin);
	scan(m, c, bytes, e->captured);
	if (e->captured < e->bytes)
		scan_gap(m, c, e->bytes - e->captured);
}

static void on_write(struct matcher *m, struct client_stream *c, const struct ft_request_write *e)
{
	struct answer_write w = {e->head.t_ns, e->left_ns, e->bytes, {0}};
	memcpy(w.begin, e->begin, sizeof w.begin);
	c->backlog = !w.bytes ? BACKLOG_CERTAIN : w.bytes >= WRITE_LARGE ? BACKLOG_POSSIBLE : BACKLOG_NONE;
	c->large |= c->backlog != BACKLOG_NONE;
	if (!w.bytes)
		return;
	c->last_write_ns = w.t_ns;
	c->wrote = true;
	if (c->sync == SYNC_REST)
		end_rest(m, c);
	if (!c->pending_count)
		return;
	if (c->write_count < WRITES_MAX) {
		if (!grow(&c->writes, &c->writes_room, c->write_count, sizeof *c->writes)) {
			client_stream_lose(m, c);
			return;
		}
		c->writes[c->write_count] = w;
	}
	c->write_count += 1 + e->unsent;
	c->last = w;
	c->answer_bytes += w.bytes;
	client_stream_written(m, c);
	if (c->pushed && !c->asynchronous && c->backlog == BACKLOG_NONE) /* what follows is no answer */
		client_stream_complete(m, c);
}

static void on_connection(struct matcher *m, const struct ft_request_connection *e)
{
	struct client_stream **place = &m->table[e->head.connection % FT_REQUESTS_SLOTS_MAX];
	if (*place && (*place)->id != e->head.connection)
		forget(m, *place);
	if (!*place) {
		*place = calloc(1, sizeof **place);
		if (!*place)
			return;
		(*place)->offset = (*place)->begin = e->start;
		(*place)->sequence = e->head.sequence;
	}
	struct client_stream *c = *place;
	if (c->begun) { /* the programs were detached for a while */
		client_stream_lose_after_gap(m, c);
		c->offset = c->begin = e->start;
		c->sequence = e->head.sequence;
		c->begun = c->wrote = false;
		c->backlog = BACKLOG_NONE;
	}
	c->id = e->head.connection;
	c->tgid = e->tgid ? e->tgid : c->tgid;
	if (!c->announced)
		c->opened = *e;
}

static void on_closed(struct matcher *m, struct client_stream *c, uint64_t t_ns)
{
	if (c->write_count && c->backlog != BACKLOG_CERTAIN)
		client_stream_complete(m, c);
	client_stream_lose(m, c);
	const struct request_message message = {
	    .kind = MESSAGE_CLOSED, .connection = c->id, .closed_ns = t_ns};
	if (c->announced && m->proxied) /* after its requests */
		proxied_add(m->proxied, &message, 0, false, t_ns);
	else if (c->announced)
		m->handler(m->context, &message);
	forget(m, c);
}

void matcher_event(struct matcher *m, const void *event, size_t bytes)
{
	const struct ft_request_head *head = event;
	if (head->type == FT_REQUEST_CONNECTION) {
		on_connection(m, event);
		return;
	}
	struct client_stream *c = m->table[head->connection % FT_REQUESTS_SLOTS_MAX];
	if (!c || c->id != head->connection)
		return;
	if (head->type != FT_REQUEST_CLOSED && head->sequence != c->sequence++) {
		client_stream_lose_after_gap(m, c);
		c->sequence = (uint16_t)(head->sequence + 1);
	}
	switch (head->type) {
	case FT_REQUEST_ARRIVALS: {
		const struct ft_request_arrivals *a = event;
		add_arrivals(c, a->arrival, a->count < FT_ARRIVALS ? a->count : FT_ARRIVALS);
		break;
	}
	case FT_REQUEST_READ: {
		const struct ft_request_read *e = event;
		if (bytes >= sizeof *e + e->captured && e->captured <= e->bytes)
			on_read(m, c, e, (const uint8_t *)(e + 1));
		break;
	}
	case FT_REQUEST_WRITE:
		on_write(m, c, event);
		break;
	case FT_REQUEST_CLOSED:
		on_closed(m, c, head->t_ns);
		break;
	}
}

void matcher_tick(struct matcher *m, uint64_t now_ns)
{
	for (struct client_stream *c = m->answered, *next; c; c = next) {
		next = c->next_answered;
		const uint64_t after_ns = c->backlog == BACKLOG_NONE ? COMPLETE_NS : COMPLETE_LARGE_NS;
		if (c->backlog != BACKLOG_CERTAIN && c->last.t_ns + after_ns < now_ns) {
			client_stream_complete(m, c);
			client_stream_release(m, c);
		}
	}
	if (m->proxied)
		proxied_tick(m->proxied, now_ns);
}

void matcher_finish(struct matcher *m)
{
	matcher_tick(m, UINT64_MAX);
	struct request_message message = {.kind = MESSAGE_COUNTS};
	memcpy(message.counts, m->counts, sizeof m->counts);
	m->handler(m->context, &message);
}

/* The requests of a connection that were read, and the writes since, as one group: it ends when all of them
 * are answered. Memory is bounded for all connections together, because a client may send requests and never
 * read an answer. */

enum {
	PENDING_MAX = 65536,	/* requests of a connection without an answer */
	PENDING_GROUPED = 1024, /* of an asynchronous server */
	PENDING_ALL = 1 << 20,	/* of all connections: 40 MB */
	ROOM_KEPT = 64,		/* more memory than for this many is returned after each group */
};

static void unqueue(struct client_stream *c)
{
	if (!c->answered_before)
		return;
	*c->answered_before = c->next_answered;
	if (c->next_answered)
		c->next_answered->answered_before = c->answered_before;
	c->answered_before = NULL;
	c->next_answered = NULL;
}

static void client_stream_written(struct matcher *m, struct client_stream *c)
{
	if (c->answered_before)
		return;
	c->next_answered = m->answered;
	c->answered_before = &m->answered;
	if (m->answered)
		m->answered->answered_before = &c->next_answered;
	m->answered = c;
}

static void client_stream_release(struct matcher *m, struct client_stream *c)
{
	m->pending_room -= c->pending_room;
	free(c->pending);
	free(c->texts);
	free(c->writes);
	free(c->arrivals);
	c->pending = NULL;
	c->texts = NULL;
	c->texts_room = 0;
	c->writes = NULL;
	c->arrivals = NULL;
	c->pending_room = c->writes_room = c->arrivals_room = 0;
	c->arrival_count = 0;
}

static void client_stream_free(struct matcher *m, struct client_stream *c)
{
	unqueue(c);
	client_stream_release(m, c);
	free(c);
}

static void announce(struct matcher *m, struct client_stream *c)
{
	const struct ft_request_connection *o = &c->opened;
	struct request_message message = {.kind = MESSAGE_CONNECTION,
					  .connection = c->id,
					  .opened = {.opened_ns = o->head.t_ns,
						     .peer_inode = o->peer_inode,
						     .hash = o->hash,
						     .tgid = c->tgid,
						     .peer_pid = o->peer_pid,
						     .local_port = o->local_port,
						     .peer_port = o->peer_port}};
	memcpy(message.opened.peer_address, o->peer_address, sizeof o->peer_address);
	memcpy(message.opened.peer_comm, o->peer_comm, sizeof o->peer_comm);
	m->handler(m->context, &message);
	m->counts[COUNT_CONNECTIONS]++;
	c->announced = true;
}

/* Nothing is pending any more. */
static void begin_group(struct matcher *m, struct client_stream *c)
{
	unqueue(c);
	c->pending_count = 0;
	c->write_count = 0;
	c->answer_bytes = 0;
	c->blocked = c->unknown = c->large = false;
	if (c->pending_room > ROOM_KEPT) {
		m->pending_room -= c->pending_room;
		c->pending_room = c->texts_room = 0;
		free(c->pending);
		free(c->texts);
		c->pending = NULL;
		c->texts = NULL;
	}
	if (c->writes_room > ROOM_KEPT) {
		c->writes_room = 0;
		free(c->writes);
		c->writes = NULL;
	}
}

/* The connection's name or library from now on. Redis accepts printable ASCII without spaces only. */
static void send_name(struct matcher *m, const struct client_stream *c, const struct pending *p)
{
	const struct pending_text *name = &c->texts[p - c->pending];
	struct request_message message = {
	    .kind = MESSAGE_NAME, .connection = c->id, .name = {.as = p->text_as}};
	const size_t room = sizeof message.name.text - 1;
	for (size_t i = 0; i < name->bytes; i++)
		if (name->text[i] < '!' || name->text[i] > '~')
			return;
	memcpy(message.name.text, name->text, name->bytes < room ? name->bytes : room);
	m->handler(m->context, &message);
}

/* Which key a request had that was read and not answered at once. It took long itself, or was read before one
 * that did; those behind that one are read late and answered at once. Of requests that one read had, it is
 * not known which one took long. */
static void send_key(struct matcher *m, const struct client_stream *c, const struct pending *p,
		     uint64_t written_ns)
{
	const struct pending_text *key = &c->texts[p - c->pending];
	const struct pending *end = c->pending + c->pending_count;
	const bool alone =
	    (p == c->pending || p[-1].read_ns != p->read_ns) && (p + 1 == end || p[1].read_ns != p->read_ns);
	if (!alone || written_ns < p->read_ns + KEY_SLOW_NS)
		return;
	const uint64_t second = written_ns / 1000000000;
	m->keys_sent = m->keys_second == second ? m->keys_sent + 1 : 1;
	m->keys_second = second;
	if (m->keys_sent > KEYS_PER_SECOND) {
		m->counts[COUNT_KEYS_LEFT_OUT]++;
		return;
	}
	struct request_message message = {.kind = MESSAGE_KEY,
					  .connection = c->id,
					  .key = {.read_ns = p->read_ns, .tid = p->tid, .bytes = key->bytes}};
	memcpy(message.key.text, key->text, sizeof message.key.text);
	m->handler(m->context, &message);
}

/* Reports a request. `w` ends the answer; `first` begins it, or is NULL if that is in the middle of a write.
 */
static void answer(struct matcher *m, struct client_stream *c, const struct pending *p,
		   const struct answer_write *first, const struct answer_write *w, uint64_t answer_bytes)
{
	uint8_t status = FT_STATUS_OK;
	if (p->left_out)
		return;
	if (!first || !outcome_of(first->begin, &status))
		m->counts[COUNT_NO_OUTCOME]++;
	if (!c->announced)
		announce(m, c);
	uint64_t end_ns = w->left_ns && w->left_ns < w->t_ns ? w->left_ns : w->t_ns;
	if (end_ns < p->arrival_ns) /* the write began before: it answers something else */
		end_ns = w->t_ns;
	const struct request_message message = {
	    .kind = MESSAGE_REQUEST,
	    .connection = c->id,
	    .request = {.arrival_ns = p->arrival_ns,
			.end_ns = end_ns,
			.read_ns = p->read_ns,
			.written_ns = w->t_ns,
			.request_bytes = p->bytes,
			.answer_bytes = answer_bytes < UINT32_MAX ? (uint32_t)answer_bytes : UINT32_MAX,
			.tid = p->tid,
			.command = p->command,
			.status = status}};
	if (m->proxied)
		proxied_add(m->proxied, &message, p->hash, c->proxy, w->t_ns);
	else
		m->handler(m->context, &message);
	if (p->text_as == TEXT_KEY)
		send_key(m, c, p, w->t_ns);
	else if (p->text_as == TEXT_LIBRARY || (p->text_as == TEXT_NAME && status != FT_STATUS_ERROR_REPLY))
		send_name(m, c, p);
	m->counts[COUNT_UNKNOWN] += p->command == COMMAND_UNKNOWN;
	m->counts[COUNT_UNARRIVED] += p->unarrived;
}

static void client_stream_leave(struct matcher *m, struct client_stream *c)
{
	m->counts[COUNT_LOST]++;
	c->sync = SYNC_LOST;
	c->multi = false;
	c->unknown = true;
}

static void client_stream_lose(struct matcher *m, struct client_stream *c)
{
	for (size_t i = 0; i < c->pending_count; i++)
		m->counts[COUNT_LOST] += !c->pending[i].left_out;
	begin_group(m, c);
	c->sync = SYNC_LOST;
	c->multi = false;
}

/* Reports requests that were answered by several writes, of which only the first WRITES_MAX are known one by
 * one. With another number of requests, the answers are taken to be of equal length. */
static void answer_by_shares(struct matcher *m, struct client_stream *c)
{
	const size_t n = c->pending_count;
	const bool each = c->write_count == n && !c->large;
	uint64_t before = 0; /* bytes of earlier writes */
	uint32_t w = 0;

	for (size_t i = 0; i < n; i++) {
		const uint64_t end = c->answer_bytes * (i + 1) / n;
		while (!each && w + 1 < c->write_count && before + c->writes[w].bytes < end)
			before += c->writes[w++].bytes;
		const struct answer_write *by = &c->writes[each ? i : w];
		const struct answer_write *first = each || !i ? &c->writes[i] : NULL;
		answer(m, c, &c->pending[i], first, by, each ? by->bytes : c->answer_bytes / n);
	}
	if (!each)
		m->counts[COUNT_EXCHANGES] += n;
}

static void client_stream_complete(struct matcher *m, struct client_stream *c)
{
	const size_t n = c->pending_count;
	const bool many = n > 1 && c->write_count > 1;
	if ((many &&
	     (c->write_count > WRITES_MAX || (c->asynchronous && (c->large || c->write_count != n)))) ||
	    (c->unknown && c->write_count > 1)) {
		client_stream_lose(m, c);
		return;
	}
	if (many)
		answer_by_shares(m, c);
	else
		for (size_t i = 0; i < n; i++)
			answer(m, c, &c->pending[i], i ? NULL : c->writes, &c->last, c->answer_bytes / n);
	begin_group(m, c);
}

static void client_stream_lose_after_gap(struct matcher *m, struct client_stream *c)
{
	if (c->pending_count == 1 && c->write_count && !c->large && !c->asynchronous)
		client_stream_complete(m, c);
	client_stream_lose(m, c);
	c->arrival_count = 0;
}

static bool client_stream_add(struct matcher *m, struct client_stream *c, uint8_t command, uint64_t hash,
			      uint32_t end)
{
	const size_t room = c->pending_room;
	const bool fits = c->pending_count < room || m->pending_room + room <= PENDING_ALL;
	if (c->pending_count == (c->asynchronous ? PENDING_GROUPED : PENDING_MAX) || !fits ||
	    !grow(&c->pending, &c->pending_room, c->pending_count, sizeof *c->pending)) {
		m->counts[COUNT_LOST]++;
		client_stream_lose(m, c);
		return false;
	}
	m->pending_room += c->pending_room - room;
	c->overlaps |= c->pending_count > 0;
	c->pending[c->pending_count++] =
	    (struct pending){.arrival_ns = c->begin_arrival_ns ? c->begin_arrival_ns : c->now_ns,
			     .read_ns = c->now_ns,
			     .bytes = end - c->begin,
			     .tid = c->tid,
			     .command = command,
			     .hash = hash,
			     .unarrived = !c->begin_arrival_ns,
			     .left_out = c->blocked};
	return true;
}

/* The protocols differ in their first byte: RESP has a sign, memcached's text and meta protocols a letter or
 * digit, its binary protocol 0x81. Anything else (TLS, a message without a request) is unknown. */

struct beginning {
	const char *text;
	uint8_t status;
};

/* The first match counts. RESP's push and attribute types precede an answer, or are none. */
static const struct beginning beginnings[] = {
    {"-", FT_STATUS_ERROR_REPLY},
    {"!", FT_STATUS_ERROR_REPLY},
    {"$-1\r", FT_STATUS_MISS},
    {"*-1\r", FT_STATUS_MISS},
    {"_\r", FT_STATUS_MISS},
    {"ERROR", FT_STATUS_ERROR_REPLY},
    {"CLIENT_E", FT_STATUS_ERROR_REPLY},
    {"SERVER_E", FT_STATUS_ERROR_REPLY},
    {"END\r", FT_STATUS_MISS},
    {"NOT_FOUN", FT_STATUS_MISS},
    {"EN\r", FT_STATUS_MISS},
    {"NF", FT_STATUS_MISS},
};

/* Of memcached's binary protocol: bytes 6 and 7 of the header. */
static uint8_t binary_status(const uint8_t *begin)
{
	enum { NO_ERROR = 0, NOT_FOUND = 1, EXISTS = 2, NOT_STORED = 5 };
	switch (begin[6] << 8 | begin[7]) {
	case NO_ERROR:
	case EXISTS: /* as in the text protocol, an answer and no error */
	case NOT_STORED:
		return FT_STATUS_OK;
	case NOT_FOUND:
		return FT_STATUS_MISS;
	default:
		return FT_STATUS_ERROR_REPLY;
	}
}

static bool outcome_of(const uint8_t begin[FT_ANSWER_BEGIN], uint8_t *status)
{
	enum { BINARY_RESPONSE = 0x81 };
	*status = FT_STATUS_OK;
	if (begin[0] == BINARY_RESPONSE) {
		*status = binary_status(begin);
		return true;
	}
	if (!begin[0] || (!strchr("-+:$*_,#!=(%~", begin[0]) && !isalnum(begin[0])))
		return false;
	for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
		if (memcmp(begin, beginnings[i].text, strlen(beginnings[i].text)) == 0) {
			*status = beginnings[i].status;
			return true;
		}
	return true;
}

/* The ring comes in a packet, and is mapped before the process gives up its rights; reading it then needs no
 * system call. The process looks twenty times per second. If the recorder is slow, it waits, and the kernel
 * counts what does not fit into the ring. */

enum {
	LOOK_MS = 50,
	SOCKET_BYTES = 4 << 20,
};

struct outbox {
	struct request_message messages[REQUEST_PACKET];
	size_t count;
};

static void send_outbox(struct outbox *o)
{
	if (o->count && send_packet(HELPER_SOCKET, o->messages, o->count * sizeof *o->messages, -1, 0))
		_exit(0); /* the recorder has exited */
	o->count = 0;
}

/* A request_handler. */
static void put(void *context, const struct request_message *message)
{
	struct outbox *o = context;
	o->messages[o->count++] = *message;
	if (o->count == REQUEST_PACKET)
		send_outbox(o);
}

static int on_event(void *context, void *event, size_t bytes)
{
	matcher_event(context, event, bytes);
	return 0;
}

/* Takes what the recorder sent. False: it asked for the end, or has exited. */
static bool take_targets(struct matcher *m)
{
	struct request_target target;
	for (;;) {
		int fd;
		ssize_t n = receive_packet(HELPER_SOCKET, &target, sizeof target, &fd, MSG_DONTWAIT);
		if (n == -EAGAIN)
			return true;
		if (n != sizeof target || !target.tgid)
			return false;
		matcher_target(m, &target);
	}
}

static void serve(struct ring_buffer *ring, struct matcher *m, struct outbox *o)
{
	struct pollfd fd = {.fd = HELPER_SOCKET, .events = POLLIN};
	bool more = true;
	while (more) {
		poll(&fd, 1, LOOK_MS);
		more = take_targets(m);
		ring_buffer__consume(ring);
		matcher_tick(m, ft_now_ns());
		send_outbox(o);
	}
	matcher_finish(m);
	send_outbox(o);
}

/* Waits for the map of events. Its descriptors are not needed once it is mapped. */
static struct ring_buffer *receive_ring(struct matcher *m)
{
	uint32_t key_bytes;
	int map;
	if (receive_packet(HELPER_SOCKET, &key_bytes, sizeof key_bytes, &map, 0) != sizeof key_bytes ||
	    map < 0)
		_exit(0);
	scanner_keep_keys(key_bytes);
	struct ring_buffer *ring = ring_buffer__new(map, on_event, m, NULL);
	close_range(HELPER_SOCKET + 1, ~0u, 0);
	return ring;
}

static void live(pid_t parent, size_t kept_count)
{
	static struct outbox o;
	uint64_t seed = 0;
	(void)kept_count;
	struct matcher *m = matcher_open(put, &o);
	struct ring_buffer *ring = receive_ring(m);
	if (!m || !ring || getrandom(&seed, sizeof seed, 0) != sizeof seed ||
	    privileges_confine_requests(parent))
		_exit(3);
	scanner_seed(seed);
	serve(ring, m, &o);
}

const struct helper_setup requests_helper = {
    .name = "forktail-reqs", .live = live, .socket_bytes = SOCKET_BYTES, .low_priority = true};

int request_helper_start(struct helper_process *h)
{
	const int err = helper_process_start(h, &requests_helper, NULL, 0);
	if (!err)
		fcntl(h->socket, F_SETFL, O_NONBLOCK);
	return err;
}

int request_helper_map(const struct helper_process *h, int map, uint32_t key_bytes)
{
	return send_packet(h->socket, &key_bytes, sizeof key_bytes, map, 0);
}

void request_helper_target(const struct helper_process *h, const struct request_target *target)
{
	send_packet(h->socket, target, sizeof *target, -1, MSG_DONTWAIT);
}

void request_helper_finish(const struct helper_process *h)
{
	const struct request_target none = {.tgid = 0};
	send_packet(h->socket, &none, sizeof none, -1, 0);
}

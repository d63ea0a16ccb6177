/* SPDX-License-Identifier: MIT */
/* The table is indexed by the low bits of a connection's number: numbers are given in turn, so two
 * connections share a place only if 65,536 others were opened in between. The newer one takes it. */
#include "loader/requests/matcher.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/request_events.h"
#include "loader/requests/client_stream.h"
#include "loader/requests/commands.h"
#include "loader/requests/proxied.h"
#include "loader/requests/scanner.h"
#include "loader/system/grow.h"

enum {
	/* After a write of this size, Redis serves other clients before it writes the rest. */
	WRITE_LARGE = 65536,
	ARRIVALS_MAX = 2 * FT_ARRIVALS,
};
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
		client_stream_add(m, c, s->command, s->hash, c->offset);
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
	int result = scanner_gap(&c->scanner, skipped, &s);
	if (result > 0)
		request_ended(m, c, &s);
	if (result < 0 || skipped < bytes)
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

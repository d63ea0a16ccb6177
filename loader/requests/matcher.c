/* SPDX-License-Identifier: MIT */
/* The table is indexed by the low bits of a connection's number: numbers are given in turn, so two
 * connections share a place only if 65,536 others were opened in between. The newer one takes it. */
#include "loader/requests/matcher.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/request_events.h"
#include "loader/requests/commands.h"
#include "loader/requests/proxied.h"
#include "loader/requests/scanner.h"
#include "loader/system/grow.h"

enum {
	PENDING_MAX = 65536,	/* requests of a connection without an answer */
	PENDING_GROUPED = 1024, /* of an asynchronous server */
	PENDING_ALL = 1 << 20,	/* of all connections: 32 MB */
	WRITES_MAX = 256,	/* of a group of requests, kept one by one */
	ROOM_KEPT = 64,		/* more memory than for this many is returned after each group */
	/* After a write of this size, Redis serves other clients before it writes the rest. */
	WRITE_LARGE = 65536,
	ARRIVALS_MAX = 2 * FT_ARRIVALS,
	TARGETS = 1024,
};
/* An answer is complete this long after its last write if nothing else is read. */
#define COMPLETE_NS 100000000ull
/* Likewise, if the server may have more to write and the client is slow. */
#define COMPLETE_LARGE_NS 10000000000ull

enum sync {
	SYNC_LOST, /* the position in the stream of requests is unknown, until the connection is idle */
	SYNC_FOLLOWED,
	SYNC_EXCHANGES, /* the bytes are not readable (TLS): what is read until a write is one request */
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
	bool left_out; /* it blocks, or is behind one that does: it only takes part in the matching */
};

struct answer_write {
	uint64_t t_ns, left_ns;
	uint32_t bytes;
};

struct connection {
	uint32_t id, tgid;
	struct ft_request_connection opened;
	struct scanner scanner;
	uint8_t sync;
	bool announced;	 /* the recorder knows it */
	uint8_t backlog; /* enum backlog */
	bool asynchronous, begun;
	bool pushes;		/* what is written answers no request */
	bool pushed;		/* messages may be written after an answer */
	bool wrote;		/* since the last read */
	bool multi;		/* between MULTI and EXEC nothing blocks */
	bool blocked;		/* a command that may wait for data is pending */
	bool overlaps;		/* the client has sent a request before it had the answer to another */
	bool unknown;		/* requests that are not known may be pending, too */
	bool large;		/* of the writes since all was answered, one was not the last of its answer */
	bool unproved;		/* nothing since it was found again was a known command */
	uint16_t sequence;	/* of the next event */
	uint32_t offset;	/* of the stream, scanned so far */
	uint32_t begin;		/* where the request that is being scanned began */
	uint64_t last_write_ns; /* the last write of all */
	uint64_t now_ns;	/* of the read that is being scanned */
	uint32_t tid;
	struct ft_request_arrival *arrivals;
	size_t arrival_count, arrivals_room;
	uint64_t begin_arrival_ns; /* of the request that is being scanned; 0: unknown */
	struct pending *pending;
	size_t pending_count, pending_room;
	struct answer_write *writes;
	size_t writes_room;
	uint32_t write_count;				     /* may be more than are kept */
	struct answer_write last;			     /* the last one */
	uint64_t answer_bytes;				     /* of all */
	struct connection *next_answered, **answered_before; /* in the list of those with writes */
};

struct matcher {
	request_handler handler;
	void *context;
	struct connection *table[FT_REQUESTS_SLOTS_MAX];
	struct connection *answered; /* connections with writes that are not complete */
	struct request_target targets[TARGETS];
	size_t target_count;
	size_t pending_room; /* of all connections */
	uint8_t ping, unsubscribe;
	uint64_t counts[REQUEST_COUNTS];
	struct proxied *proxied; /* once there is a proxy among the targets */
};

struct matcher *matcher_open(request_handler handler, void *context)
{
	struct matcher *m = calloc(1, sizeof *m);
	if (m) {
		m->handler = handler;
		m->context = context;
		m->ping = (uint8_t)commands_find("PING", 4);
		m->unsubscribe = (uint8_t)commands_find("UNSUBSCRIBE", 11);
	}
	return m;
}

static void leave_answered(struct connection *c)
{
	if (!c->answered_before)
		return;
	*c->answered_before = c->next_answered;
	if (c->next_answered)
		c->next_answered->answered_before = c->answered_before;
	c->answered_before = NULL;
	c->next_answered = NULL;
}

static void enter_answered(struct matcher *m, struct connection *c)
{
	if (c->answered_before)
		return;
	c->next_answered = m->answered;
	c->answered_before = &m->answered;
	if (m->answered)
		m->answered->answered_before = &c->next_answered;
	m->answered = c;
}

/* Returns the memory of a connection with nothing pending. */
static void release(struct matcher *m, struct connection *c)
{
	m->pending_room -= c->pending_room;
	free(c->pending);
	free(c->writes);
	free(c->arrivals);
	c->pending = NULL;
	c->writes = NULL;
	c->arrivals = NULL;
	c->pending_room = c->writes_room = c->arrivals_room = 0;
	c->arrival_count = 0;
}

static void forget(struct matcher *m, struct connection *c)
{
	leave_answered(c);
	m->table[c->id % FT_REQUESTS_SLOTS_MAX] = NULL;
	release(m, c);
	free(c);
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
	if (target->asynchronous && !m->proxied)
		m->proxied = proxied_open(m->handler, m->context);
	struct request_target *known = (struct request_target *)target_of(m, target->tgid);
	if (known)
		*known = *target;
	else if (m->target_count < TARGETS)
		m->targets[m->target_count++] = *target;
}

static void restart_scanner(struct matcher *m, struct connection *c)
{
	const struct request_target *t = target_of(m, c->tgid);
	c->scanner = (struct scanner){
	    .protocol = t ? t->protocol : SCAN_EITHER, .replies = c->scanner.replies, .lost = c->begun};
	c->asynchronous = t && t->asynchronous;
}

static void announce(struct matcher *m, struct connection *c)
{
	const struct ft_request_connection *o = &c->opened;
	struct request_message message = {.kind = MESSAGE_CONNECTION,
					  .connection = c->id,
					  .opened = {.opened_ns = o->head.t_ns,
						     .inode = o->inode,
						     .peer_inode = o->peer_inode,
						     .tgid = c->tgid,
						     .peer_pid = o->peer_pid,
						     .local_port = o->local_port,
						     .peer_port = o->peer_port}};
	memcpy(message.opened.peer_address, o->peer_address, sizeof o->peer_address);
	m->handler(m->context, &message);
	m->counts[COUNT_CONNECTIONS]++;
	c->announced = true;
}

/* Nothing is pending any more. */
static void begin_group(struct matcher *m, struct connection *c)
{
	leave_answered(c);
	c->pending_count = 0;
	c->write_count = 0;
	c->answer_bytes = 0;
	c->blocked = c->unknown = c->large = false;
	if (c->pending_room > ROOM_KEPT) {
		m->pending_room -= c->pending_room;
		c->pending_room = 0;
		free(c->pending);
		c->pending = NULL;
	}
	if (c->writes_room > ROOM_KEPT) {
		c->writes_room = 0;
		free(c->writes);
		c->writes = NULL;
	}
}

/* Reports a request. */
static void answer(struct matcher *m, struct connection *c, const struct pending *p,
		   const struct answer_write *w, uint64_t answer_bytes)
{
	if (p->left_out)
		return;
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
			.command = p->command}};
	if (m->proxied)
		proxied_add(m->proxied, &message, p->hash, c->asynchronous, w->t_ns);
	else
		m->handler(m->context, &message);
	m->counts[COUNT_UNKNOWN] += p->command == COMMAND_UNKNOWN;
	m->counts[COUNT_UNARRIVED] += p->unarrived;
}

/* From here on the position in the stream is unknown. What is pending is known. */
static void leave(struct matcher *m, struct connection *c)
{
	m->counts[COUNT_LOST]++;
	c->sync = SYNC_LOST;
	c->multi = false;
	c->unknown = true;
}

/* Likewise, and which write answers what is pending is not known either. */
static void lose(struct matcher *m, struct connection *c)
{
	for (size_t i = 0; i < c->pending_count; i++)
		m->counts[COUNT_LOST] += !c->pending[i].left_out;
	begin_group(m, c);
	c->sync = SYNC_LOST;
	c->multi = false;
}

/* Reports requests that were answered by several writes, of which only the first WRITES_MAX are known one by
 * one. With another number of requests, the answers are taken to be of equal length. */
static void answer_by_shares(struct matcher *m, struct connection *c)
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
		answer(m, c, &c->pending[i], by, each ? by->bytes : c->answer_bytes / n);
	}
	if (!each)
		m->counts[COUNT_EXCHANGES] += n;
}

/* All that is pending was answered by the writes since. */
static void complete(struct matcher *m, struct connection *c)
{
	const size_t n = c->pending_count;
	const bool many = n > 1 && c->write_count > 1;
	if ((many &&
	     (c->write_count > WRITES_MAX || (c->asynchronous && (c->large || c->write_count != n)))) ||
	    (c->unknown && c->write_count > 1)) {
		lose(m, c);
		return;
	}
	if (many)
		answer_by_shares(m, c);
	else
		for (size_t i = 0; i < n; i++)
			answer(m, c, &c->pending[i], &c->last, c->answer_bytes / n);
	begin_group(m, c);
}

/* Events are missing from here on. An answer that was one write is complete; of several requests or large
 * answers, later writes may be among those events. */
static void lose_after_gap(struct matcher *m, struct connection *c)
{
	if (c->pending_count == 1 && c->write_count && !c->large && !c->asynchronous)
		complete(m, c);
	lose(m, c);
	c->arrival_count = 0;
}

/* When the byte at an offset arrived; 0: unknown. */
static uint64_t arrival_of(const struct connection *c, uint32_t offset)
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
static void drop_arrivals(struct connection *c, uint32_t offset)
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
static void add_arrivals(struct connection *c, const struct ft_request_arrival *more, uint32_t count)
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

/* A request that ended at the offset was read. */
static void add_pending(struct matcher *m, struct connection *c, uint8_t command, uint64_t hash, uint32_t end)
{
	const size_t room = c->pending_room;
	const bool fits = c->pending_count < room || m->pending_room + room <= PENDING_ALL;
	if (c->pending_count == (c->asynchronous ? PENDING_GROUPED : PENDING_MAX) || !fits ||
	    !grow(&c->pending, &c->pending_room, c->pending_count, sizeof *c->pending)) {
		m->counts[COUNT_LOST]++;
		lose(m, c);
		return;
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
}

static void begin_request(struct connection *c, uint32_t offset)
{
	c->begin = offset;
	c->begin_arrival_ns = arrival_of(c, offset);
}

/* Whether a request is one of a connection that gets messages without asking, and its answer one of them. A
 * subscriber may send few other commands, so these say that it is none any more. */
static bool is_subscribers(const struct matcher *m, struct connection *c, const struct scanned *s)
{
	if (s->flags & (SCANNED_PUSHES | SCANNED_TRACKING))
		c->pushed = true;
	if (s->flags & SCANNED_PUSHES)
		c->pushes = true;
	else if (s->command != m->ping && s->command != m->unsubscribe && s->command != COMMAND_OTHER)
		c->pushes = false;
	return c->pushes;
}

static void request_ended(struct matcher *m, struct connection *c, const struct scanned *s)
{
	if (c->unproved && s->command == COMMAND_OTHER) { /* more likely the middle of a value */
		lose(m, c);
		return;
	}
	c->unproved = false;
	if (is_subscribers(m, c, s)) {
		m->counts[COUNT_PUSHES]++;
	} else if (s->flags & SCANNED_NO_REPLY) {
		m->counts[COUNT_NO_REPLY]++;
	} else {
		/* The answer to a blocking command comes when there is data, and what follows waits for it.
		 */
		c->blocked |= s->flags & SCANNED_BLOCKING && !c->multi;
		m->counts[COUNT_BLOCKING] += c->blocked;
		add_pending(m, c, s->command, s->hash, c->offset);
	}
	c->multi = (c->multi || s->flags & SCANNED_MULTI) && !(s->flags & SCANNED_EXEC);
	begin_request(c, c->offset);
}

/* Scans bytes that were captured. */
static void scan(struct matcher *m, struct connection *c, const uint8_t *at, uint32_t bytes)
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
			lose(m, c);
		else
			return;
	}
	c->offset += (uint32_t)(end - at);
}

/* Skips bytes that were not captured. The request that is being scanned may end among them, but what follows
 * it is unknown. */
static void scan_gap(struct matcher *m, struct connection *c, uint32_t bytes)
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
		leave(m, c);
	c->offset = end;
}

static bool is_tls(const uint8_t *at, uint32_t bytes)
{
	enum { HANDSHAKE = 22, VERSION = 3 };
	return bytes >= 2 && at[0] == HANDSHAKE && at[1] == VERSION;
}

/* Whether a read begins where all earlier requests have been answered. */
static bool is_idle(const struct connection *c, uint32_t begin)
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
static void find_again(struct matcher *m, struct connection *c, const struct ft_request_read *e,
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
static bool is_answered(const struct connection *c, uint32_t begin)
{
	if (!c->write_count)
		return false;
	if (!c->asynchronous && c->backlog == BACKLOG_NONE)
		return true;
	/* A client that waits for answers may have the last one before write() returned. */
	const uint64_t left_ns = !c->overlaps && c->last.left_ns ? c->last.left_ns : c->last.t_ns;
	return c->backlog != BACKLOG_CERTAIN && arrival_of(c, begin) > left_ns;
}

static void on_read(struct matcher *m, struct connection *c, const struct ft_request_read *e,
		    const uint8_t *bytes)
{
	const uint32_t begin = e->end - e->bytes;
	if (e->arrivals <= FT_READ_ARRIVALS)
		add_arrivals(c, e->arrival, e->arrivals);
	c->now_ns = e->head.t_ns;
	c->tid = e->tid;
	if (begin != c->offset) { /* bytes before it are missing */
		lose(m, c);
		c->offset = begin;
	}
	drop_arrivals(c, begin);
	if (is_answered(c, begin))
		complete(m, c);
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
			add_pending(m, c, COMMAND_UNKNOWN, 0, e->end);
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

static void on_write(struct matcher *m, struct connection *c, const struct ft_request_write *e)
{
	const struct answer_write w = {e->head.t_ns, e->left_ns, e->bytes};
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
			lose(m, c);
			return;
		}
		c->writes[c->write_count] = w;
	}
	c->write_count += 1 + e->unsent;
	c->last = w;
	c->answer_bytes += w.bytes;
	enter_answered(m, c);
	if (c->pushed && !c->asynchronous && c->backlog == BACKLOG_NONE) /* what follows is no answer */
		complete(m, c);
}

static void on_connection(struct matcher *m, const struct ft_request_connection *e)
{
	struct connection **place = &m->table[e->head.connection % FT_REQUESTS_SLOTS_MAX];
	if (*place && (*place)->id != e->head.connection)
		forget(m, *place);
	if (!*place) {
		*place = calloc(1, sizeof **place);
		if (!*place)
			return;
		(*place)->offset = (*place)->begin = e->start;
		(*place)->sequence = e->head.sequence;
	}
	struct connection *c = *place;
	if (c->begun) { /* the programs were detached for a while */
		lose_after_gap(m, c);
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

static void on_closed(struct matcher *m, struct connection *c, uint64_t t_ns)
{
	if (c->write_count && c->backlog != BACKLOG_CERTAIN)
		complete(m, c);
	lose(m, c);
	const struct request_message message = {
	    .kind = MESSAGE_CLOSED, .connection = c->id, .closed_ns = t_ns};
	if (c->announced)
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
	struct connection *c = m->table[head->connection % FT_REQUESTS_SLOTS_MAX];
	if (!c || c->id != head->connection)
		return;
	if (head->type != FT_REQUEST_CLOSED && head->sequence != c->sequence++) {
		lose_after_gap(m, c);
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
	for (struct connection *c = m->answered, *next; c; c = next) {
		next = c->next_answered;
		const uint64_t after_ns = c->backlog == BACKLOG_NONE ? COMPLETE_NS : COMPLETE_LARGE_NS;
		if (c->backlog != BACKLOG_CERTAIN && c->last.t_ns + after_ns < now_ns) {
			complete(m, c);
			release(m, c);
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

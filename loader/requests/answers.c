/* SPDX-License-Identifier: MIT */
/* The requests of a connection that were read, and the writes since, as one group: it ends when all of them
 * are answered. Memory is bounded for all connections together, because a client may send requests and never
 * read an answer. */
#include <stdlib.h>
#include <string.h>

#include "loader/requests/client_stream.h"
#include "loader/requests/commands.h"
#include "loader/requests/outcome.h"
#include "loader/requests/proxied.h"
#include "loader/system/grow.h"
#include "recording/format.h"

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

void client_stream_written(struct matcher *m, struct client_stream *c)
{
	if (c->answered_before)
		return;
	c->next_answered = m->answered;
	c->answered_before = &m->answered;
	if (m->answered)
		m->answered->answered_before = &c->next_answered;
	m->answered = c;
}

void client_stream_release(struct matcher *m, struct client_stream *c)
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

void client_stream_free(struct matcher *m, struct client_stream *c)
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
	m->counts[COUNT_UNKNOWN] += p->command == COMMAND_UNKNOWN;
	m->counts[COUNT_UNARRIVED] += p->unarrived;
}

void client_stream_leave(struct matcher *m, struct client_stream *c)
{
	m->counts[COUNT_LOST]++;
	c->sync = SYNC_LOST;
	c->multi = false;
	c->unknown = true;
}

void client_stream_lose(struct matcher *m, struct client_stream *c)
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

void client_stream_complete(struct matcher *m, struct client_stream *c)
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

void client_stream_lose_after_gap(struct matcher *m, struct client_stream *c)
{
	if (c->pending_count == 1 && c->write_count && !c->large && !c->asynchronous)
		client_stream_complete(m, c);
	client_stream_lose(m, c);
	c->arrival_count = 0;
}

void client_stream_add(struct matcher *m, struct client_stream *c, uint8_t command, uint64_t hash,
		       uint32_t end)
{
	const size_t room = c->pending_room;
	const bool fits = c->pending_count < room || m->pending_room + room <= PENDING_ALL;
	if (c->pending_count == (c->asynchronous ? PENDING_GROUPED : PENDING_MAX) || !fits ||
	    !grow(&c->pending, &c->pending_room, c->pending_count, sizeof *c->pending)) {
		m->counts[COUNT_LOST]++;
		client_stream_lose(m, c);
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

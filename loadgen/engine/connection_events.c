/* SPDX-License-Identifier: MIT */
/* A connection's two events: answers have come, and the kernel takes bytes again.
 *
 * Per wake-up of a connection there is one read() and one write(), and no epoll_ctl(): the descriptor
 * stays registered, edge-triggered. An edge saves the kernel the second look at each descriptor that
 * level triggering costs, and is safe here: a read that returns less than it could has emptied the socket,
 * whatever comes later is a new edge, and an end of stream that came before the read shows as EV_CLOSED
 * in the same event (then we read until it's seen).
 *
 * An answer's end is read once per read(): all answers that one read() returned end then.
 */
#include "connection_events.h"

#include "answers.h"
#include "lifecycle.h"
#include "load_thread.h"
#include "recording/recording.h"
#include "send.h"
#include "transport.h"
#include "write_backlog.h"

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
	if (c->to_send > 0) { /* had to wait for that */
		send_batch(c, 0);
		if (c->fd < 0)
			return;
	}
	c->thread->model->on_room(c, ft_now_ns());
	/* A read over TLS may have waited for room to write. */
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
			connection_writable(fd, what, c); /* the handshake goes on */
		return;					  /* becoming writable says how that went */
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
		/* A stream without end must not keep the loop from its timers, nor from other connections: an
		 * event that is added anew fires again if there is more. */
		if (__builtin_expect(++rounds == READS_AT_ONCE, 0)) {
			event_del(&c->readable);
			event_add(&c->readable, NULL);
			if (!c->tls)
				break;
			tls_hold(c->tls); /* no event would tell of what TLS has taken off the socket */
		}
	} while (n < 0 || n == READ_BYTES || (what & EV_CLOSED) || transport_has_unread(c));
	if (__builtin_expect(c->tls != NULL, 0) && tls_wants_write(c->tls) && !c->backlog)
		connection_keep_backlog(c, NULL, 0);
	if (now == 0)
		return;
	t->stats->last_end_ns = now;
	t->model->on_answers(c, now);
}

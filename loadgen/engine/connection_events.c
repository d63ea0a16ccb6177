/* SPDX-License-Identifier: MIT */
/* A connection's two events: answers have arrived, and the kernel accepts bytes again. Each wake-up of a
 * connection takes one read() and one write(), and no epoll_ctl(): the descriptor stays registered,
 * edge-triggered. Edge triggering saves the kernel a second check of each descriptor, and is safe here: a
 * read that returns less than its size has emptied the socket, later bytes cause a new edge, and an end of
 * stream before the read shows as EV_CLOSED in the same event (then we read until we see it). The clock is
 * read once per read(): all answers that one read() returned end at that time. */
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

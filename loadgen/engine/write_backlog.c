/* SPDX-License-Identifier: MIT */
/* Bytes that the kernel did not accept at once, and the event that fires when it accepts more. */
#include "write_backlog.h"

#include <stdlib.h>

#include "transport.h"

struct write_backlog {
	struct event writable;
	size_t done, length;
	char bytes[];
};

bool write_backlog_keep(struct connection *c, const char *bytes, size_t length)
{
	struct write_backlog *u = malloc(sizeof(*u) + length);

	if (!u)
		return false;
	u->done = 0;
	u->length = length;
	if (length)
		memcpy(u->bytes, bytes, length);
	c->backlog = u;
	event_assign(&u->writable, c->thread->base, c->fd, EV_WRITE | EV_PERSIST,
		     c->thread->model->on_writable, c);
	event_add(&u->writable, NULL);
	return true;
}

void write_backlog_watch(struct connection *c, bool watch)
{
	if (watch)
		event_add(&c->backlog->writable, NULL);
	else
		event_del(&c->backlog->writable);
}

int write_backlog_write(struct connection *c)
{
	struct write_backlog *u = c->backlog;
	ssize_t n = u->done < u->length ? transport_write(c, u->bytes + u->done, u->length - u->done) : 0;

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -1;
	if (n > 0)
		u->done += (size_t)n;
	if (u->done < u->length)
		return 0;
	write_backlog_drop(c);
	return 1;
}

void write_backlog_drop(struct connection *c)
{
	if (!c->backlog)
		return;
	event_del(&c->backlog->writable);
	free(c->backlog);
	c->backlog = NULL;
}

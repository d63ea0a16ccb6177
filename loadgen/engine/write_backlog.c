/* SPDX-License-Identifier: MIT */
/* Bytes that the kernel did not take at once, with the event that tells when it takes more. */
#include "write_backlog.h"

#include <stdlib.h>

#include "transport.h"

struct unsent {
	struct event writable;
	size_t done, length;
	char bytes[];
};

bool unsent_keep(struct connection *c, const char *bytes, size_t length)
{
	struct unsent *u = malloc(sizeof(*u) + length);

	if (!u)
		return false;
	u->done = 0;
	u->length = length;
	if (length)
		memcpy(u->bytes, bytes, length);
	c->unsent = u;
	event_assign(&u->writable, c->thread->base, c->fd, EV_WRITE | EV_PERSIST, c->thread->model->writable,
		     c);
	event_add(&u->writable, NULL);
	return true;
}

void unsent_watch(struct connection *c, bool watch)
{
	if (watch)
		event_add(&c->unsent->writable, NULL);
	else
		event_del(&c->unsent->writable);
}

int unsent_write(struct connection *c)
{
	struct unsent *u = c->unsent;
	ssize_t n = u->done < u->length ? transport_write(c, u->bytes + u->done, u->length - u->done) : 0;

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -1;
	if (n > 0)
		u->done += (size_t)n;
	if (u->done < u->length)
		return 0;
	unsent_drop(c);
	return 1;
}

void unsent_drop(struct connection *c)
{
	if (!c->unsent)
		return;
	event_del(&c->unsent->writable);
	free(c->unsent);
	c->unsent = NULL;
}

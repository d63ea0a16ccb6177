/* SPDX-License-Identifier: MIT */
/* Reading and writing on the hot path, plain or over TLS: one well-predicted branch. */
#ifndef FORKTAIL_LOADGEN_TRANSPORT_H
#define FORKTAIL_LOADGEN_TRANSPORT_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "load_thread.h"
#include "loadgen/net/tls.h"

static inline ssize_t transport_read(const struct connection *c, void *to, size_t size)
{
	if (__builtin_expect(c->arrival_times, 0))
		return arrival_read(c->fd, to, size, &c->thread->arriving.stamp_ns);
	return __builtin_expect(c->tls != NULL, 0) ? tls_read(c->tls, to, size) : read(c->fd, to, size);
}

static inline ssize_t transport_write(const struct connection *c, const void *from, size_t size)
{
	return __builtin_expect(c->tls != NULL, 0) ? tls_write(c->tls, from, size) : write(c->fd, from, size);
}

/* Whether the next read returns data although the last one returned less than requested. */
static inline bool transport_has_unread(const struct connection *c)
{
	return __builtin_expect(c->tls != NULL, 0) && tls_has_unread(c->tls);
}

/* A TLS session's error text, stored beyond the session: valid as long as the thread, or until the next
 * call. */
static inline const char *transport_tls_why(const struct connection *c)
{
	struct trouble *trouble = &c->thread->trouble;

	snprintf(trouble->text, sizeof(trouble->text), "the server %s", tls_why(c->tls));
	return trouble->text;
}

/* Why a read returned n, or a write -1. Valid as long as the thread, or until the next call. */
static inline const char *transport_why(const struct connection *c, ssize_t n)
{
	int error = errno;

	if (n == 0)
		return "the server closed the connection";
	if (!c->tls || error != EPROTO)
		return strerror(error);
	return transport_tls_why(c);
}

#endif

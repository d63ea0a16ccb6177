/* SPDX-License-Identifier: MIT */
/* A host's name is resolved once; connections that are opened later must not wait for a resolver. */
#include "reach.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording/recording.h"

void server_say(const struct server *s, char *error, size_t size, const char *format, ...)
{
	char address[300];
	size_t length;
	va_list args;

	address_text(&s->address, address, sizeof(address));
	snprintf(error, size, "%s ", address);
	length = strlen(error);
	va_start(args, format);
	vsnprintf(error + length, size - length, format, args);
	va_end(args);
}

const char *server_tls_name(const struct server *s)
{
	if (!s->address.tls)
		return NULL;
	return s->address.socket ? "" : s->address.host;
}

/* Performs the TLS handshake, if TLS is used. */
static int secure(struct server *s, struct link *l, uint64_t deadline_ns, char *error, size_t size)
{
	if (!s->address.tls)
		return 0;
	if (tls_begin(&s->options->tls, error, size))
		return -1;
	if (link_secure(l, server_tls_name(s), deadline_ns) == 0)
		return 0;
	server_say(s, error, size, "%s", l->error);
	snprintf(s->why, sizeof(s->why), "%s", l->error);
	return -1;
}

struct link *server_reach(struct server *s, uint32_t number, char *error, size_t size)
{
	const struct server_address *a = &s->address;
	struct link *l = malloc(sizeof(*l));
	uint64_t deadline_ns = ft_now_ns() + (s->patience_ns ? s->patience_ns : LINK_ANSWER_NS);
	char why[160] = "";
	int rc;

	if (!l) {
		snprintf(error, size, "out of memory while connecting");
		return NULL;
	}
	*l = LINK_CLOSED;
	l->stop_fd = s->stop_fd;
	l->patience_ns = s->patience_ns;
	address_text(a, l->where, sizeof(l->where));
	if (!s->found &&
	    socket_find(a->host, a->port, a->socket, REACH_TIMEOUT_S, &s->socket, why, sizeof(why)) == 0)
		s->found = true;
	if (s->found && (rc = link_open(l, &s->socket, number, deadline_ns)) != 0)
		snprintf(why, sizeof(why), "%s", strerror(-rc));
	if (l->fd >= 0) {
		if (secure(s, l, deadline_ns, error, size) == 0)
			return l;
		link_free(l);
		return NULL;
	}
	snprintf(s->why, sizeof(s->why), "%s", why);
	server_say(s, error, size, "cannot be reached: %s. Is %s running there?", why,
		   protocol_of(s->options->protocol)->product->program);
	link_free(l);
	return NULL;
}

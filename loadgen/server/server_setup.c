/* SPDX-License-Identifier: MIT */
/* The server interface for the rest of the program. Its conversation knows what is sent; the common part is
 * here. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "conversation.h"
#include "loadgen/server.h"
#include "recording/recording.h"

enum { SPARE_DESCRIPTORS = 64 };

void server_init(struct server *s, const struct options *o, const struct server_address *address,
		 bool readonly)
{
	memset(s, 0, sizeof(*s));
	s->options = o;
	s->address = *address;
	s->address.tls |= o->tls.on; /* a topology's addresses do not say */
	s->readonly = readonly;
	s->stop_fd = -1;
	s->conversation = conversation_of(o->protocol);
	s->conversation->greet(s);
}

int server_find(struct server *s, char *error, size_t size)
{
	char why[160];

	if (socket_resolve(s->address.host, s->address.port, s->address.socket, &s->socket, 1, why,
			   sizeof(why)) < 0) {
		server_say(s, error, size, "cannot be reached: %s", why);
		return -1;
	}
	s->found = true;
	return 0;
}

struct server server_twin(const struct server *s)
{
	return (struct server){
	    .options = s->options,
	    .conversation = s->conversation,
	    .address = s->address,
	    .socket = s->socket,
	    .found = s->found,
	    .readonly = s->readonly,
	    .accepts_loading = s->accepts_loading,
	    .stop_fd = s->stop_fd,
	};
}

struct endpoint server_endpoint(const struct server *s)
{
	return (struct endpoint){
	    .socket = s->socket,
	    .tls_name = server_tls_name(s),
	    .greeting = s->greeting.at,
	    .greeting_bytes = s->greeting.length,
	    .greetings = s->greetings,
	    .named = s->conversation->names && !s->nameless,
	};
}

int server_probe(struct server *s, const struct options *o, const struct server_address *address, char *error,
		 size_t size)
{
	server_init(s, o, address, false);
	*error = 0;
	return s->conversation->probe(s, error, size);
}

void server_free(struct server *s)
{
	if (s->greeting.at)
		explicit_bzero(s->greeting.at, s->greeting.length);
	free(s->greeting.at);
	s->greeting = (struct bytes){0};
}

struct link *server_enter(struct server *s, uint32_t number, char *error, size_t size)
{
	*error = 0;
	return s->conversation->enter(s, number, error, size);
}

int server_connect(struct server *s, uint32_t number, char *error, size_t size)
{
	struct link *l;

	*error = 0;
	l = s->conversation->connect(s, number, error, size);
	/* RESP3's pushes are unsolicited. */
	if (l && !s->options->resp3 && link_has_more(l)) {
		server_say(s, error, size, "sent an answer without a request");
		link_free(l);
		return -1;
	}
	s->opened += l != NULL;
	return l ? link_release(l) : -1;
}

int *server_connect_all(struct server *s, uint32_t first, uint32_t count, char *error, size_t size)
{
	int *fds = malloc(sizeof(*fds) * (count + 1u));
	uint32_t made = 0;

	snprintf(error, size, "not enough memory for the connections");
	while (fds && made < count && (fds[made] = server_connect(s, first + made, error, size)) >= 0)
		made++;
	if (!fds || made == count)
		return fds;
	while (made > 0)
		tls_close(fds[--made]);
	free(fds);
	return NULL;
}

int descriptors_reserve(unsigned count, char *error, size_t size)
{
	rlim_t need = (rlim_t)count + SPARE_DESCRIPTORS;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= need)
		return 0;
	if (limit.rlim_max < need && geteuid() == 0)
		limit.rlim_max = need;
	if (limit.rlim_max >= need) {
		limit.rlim_cur = need;
		if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
			return 0;
	}
	snprintf(error, size,
		 "%u connections need %llu file descriptors, but the limit is %llu. Raise it with ulimit -n",
		 count, (unsigned long long)need, (unsigned long long)limit.rlim_max);
	return -1;
}

/* A host's name is resolved once; connections that are opened later must not wait for a resolver. */

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
	l->others = s->opened;
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

/* The only place that knows all conversations: a new protocol gets its row here. */

const struct conversation *conversation_of(enum protocol_id protocol)
{
	static const struct conversation *const table[PROTOCOLS] = {
	    [PROTOCOL_REDIS] = &converse_redis,
	    [PROTOCOL_MEMCACHE_TEXT] = &converse_memcached_text,
	    [PROTOCOL_MEMCACHE_BINARY] = &converse_memcached_binary,
	    [PROTOCOL_MEMCACHE_META] = &converse_memcached_meta,
	};

	return table[protocol];
}

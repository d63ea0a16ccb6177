/* SPDX-License-Identifier: MIT */
/* Set-up of a connection to a memcached. It has no PING: it's asked for its version, before a password is
 * sent. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connect_parts.h"
#include "memcached_login.h"
#include "recording/recording.h"
#include "reply.h"

/* Sends a question to a memcached and waits for its answer, which is then in `reply`, and what it says in
 * *scan. 0, or -1 and a sentence. */
static int ask_memcached(struct server *s, struct link *l, struct bytes question, union reply_scanner *scan,
			 char *reply, size_t room, char *error, size_t size)
{
	enum protocol protocol = s->options->protocol;
	uint64_t deadline_ns = ft_now_ns() + TIMEOUT_S * 1000000000ull;
	int complete = link_send(l, question.at, question.length, deadline_ns) ? -1 : 0;
	size_t have = 0;

	memset(scan, 0, sizeof(*scan));
	while (complete == 0 && have < room - 1) {
		ssize_t n = link_receive(l, reply + have, room - 1 - have, deadline_ns);
		const char *at = reply + have;

		if (n < 0) {
			server_say(
			    s, error, size,
			    n == -EPROTO && l->tls
				? "broke off the TLS session: does it want a certificate (--cert, --key)?"
			    : n == -ECONNRESET
				? "accepted the connection and closed it; is that a memcached?"
				: "did not answer within 5 s; is that a memcached, and is it stuck?");
			return -1;
		}
		have += (size_t)n;
		complete = reply_scan(protocol, scan, &at, reply + have);
	}
	reply[have] = 0;
	if (complete > 0)
		return 0;
	server_say(s, error, size,
		   "is no memcached that speaks %s: it answered \"version\" with something else",
		   protocol_names[protocol]);
	return -1;
}

static int log_in_to_memcached(struct server *s, struct link *l, char *error, size_t size)
{
	const struct options *o = s->options;
	union reply_scanner scan;
	struct bytes request = {0};
	char reply[256];
	int rc = -1;

	if (!memcached_login_request(o->protocol, o->user, o->password, &request))
		snprintf(error, size, "out of memory while connecting");
	else if (ask_memcached(s, l, request, &scan, reply, sizeof(reply), error, size) == 0)
		rc = memcached_login_accepted(o->protocol, &scan) ? 0 : 1;
	if (rc == 1 && o->protocol == PROTOCOL_MEMCACHE_BINARY &&
	    scan.binary.kind == MEMCACHED_BINARY_UNKNOWN_COMMAND)
		server_say(s, error, size,
			   "knows no logins: a memcached has SASL when it is started with -S");
	else if (rc == 1)
		server_say(s, error, size, "refused the password of %s; it came from %s", o->user,
			   o->password_file ? o->password_file : "the environment");
	if (request.at)
		explicit_bzero(request.at, request.length);
	free(request.at);
	return rc ? -1 : 0;
}

struct link *enter_memcached(struct server *s, uint32_t number, struct server_facts *facts, char *error,
			     size_t size)
{
	static char text[] = "version\r\n", meta[] = "mn\r\n",
		    binary[MEMCACHED_BINARY_HEADER] = {(char)0x80, 0x0b},
		    binary_noop[MEMCACHED_BINARY_HEADER] = {(char)0x80, 0x0a};
	const struct options *o = s->options;
	bool is_meta = o->protocol == PROTOCOL_MEMCACHE_META;
	bool is_text = o->protocol != PROTOCOL_MEMCACHE_BINARY;
	struct bytes question = {is_text ? text : binary, is_text ? sizeof(text) - 1 : sizeof(binary), 0};
	struct bytes noop = {is_meta ? meta : binary_noop, is_meta ? sizeof(meta) - 1 : sizeof(binary_noop),
			     0};
	union reply_scanner scan;
	struct link *l = server_reach(s, number, error, size);
	char reply[256], answer[256];

	if (!l || ask_memcached(s, l, question, &scan, reply, sizeof(reply), error, size))
		goto failed;
	if (o->user) {
		if (log_in_to_memcached(s, l, error, size))
			goto failed;
		/* What it says of itself may have had to wait for that. */
		if (is_text && ask_memcached(s, l, question, &scan, reply, sizeof(reply), error, size))
			goto failed;
	}
	if (facts) {
		reply[strcspn(reply, "\r\n")] = 0;
		snprintf(facts->version, sizeof(facts->version), "%.31s",
			 is_text && strncmp(reply, "VERSION ", 8) == 0 ? reply + 8
			 : is_text				       ? ""
								       : reply + 24);
	}
	/* Anybody may ask for the version; whether we are let in, or understood, shows with something else.
	 */
	if ((is_meta || (!is_text && facts)) && !memcached_login_wanted(o->protocol, &scan) &&
	    ask_memcached(s, l, noop, &scan, answer, sizeof(answer), error, size))
		goto failed;
	if (!o->user && memcached_login_wanted(o->protocol, &scan)) {
		server_say(
		    s, error, size,
		    "wants a login: give --user, and a password in FORKTAIL_PASSWORD or --password-file");
		goto failed;
	}
	if (is_meta && scan.meta.kind != MEMCACHED_META_NOOP) {
		server_say(s, error, size,
			   "is a memcached without the meta commands, which came with 1.6; use --protocol "
			   "memcache_text");
		goto failed;
	}
	return l;
failed:
	link_free(l);
	return NULL;
}

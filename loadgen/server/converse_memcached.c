/* SPDX-License-Identifier: MIT */
/* Set-up of a connection to memcached, in any of its protocols. memcached has no PING, so it is asked for its
 * version before a password is sent. But every client may ask for that; a command that does nothing shows
 * whether we are allowed in and understood. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "conversation.h"
#include "loadgen/protocol.h"
#include "loadgen/server.h"
#include "recording/recording.h"

struct phrase {
	const char *at;
	size_t length;
};

/* Where the protocols differ. */
struct manner {
	struct phrase version, noop; /* noop of length 0: none */
	/* Where the version's text begins in the answer; "": not contained. */
	const char *(*version_of)(const char *reply);
	bool version_after_login; /* it is known only then, if at all */
	bool noop_always;	  /* on each connection; otherwise once, when the server is probed */
	/* Whether the answer to the noop is valid; NULL: any answer is. */
	bool (*understood)(const union reply_scanner *s);
	/* Whether a command was refused because a login is required; NULL: not visible. */
	bool (*knows_no_login)(const union reply_scanner *s);
};

/* Sends a question to memcached and waits for its answer, which is then in `reply`, with its scan in *scan.
 * Returns 0, or -1 and a sentence. */
static int ask(struct server *s, struct link *l, const struct phrase *question, union reply_scanner *scan,
	       char *reply, size_t room, char *error, size_t size)
{
	enum protocol_id protocol = s->options->protocol;
	uint64_t deadline_ns = ft_now_ns() + REACH_TIMEOUT_S * 1000000000ull;
	int complete = link_send(l, question->at, question->length, deadline_ns) ? -1 : 0;
	size_t have = 0;

	memset(scan, 0, sizeof(*scan));
	while (complete == 0 && have < room - 1) {
		ssize_t n = link_receive(l, reply + have, room - 1 - have, deadline_ns);
		const char *at = reply + have;

		if (n < 0) {
			server_say(
			    s, error, size,
			    n == -EPROTO && l->tls
				? "closed the TLS session. Does it require a certificate (--cert, --key)?"
			    : n == -ECONNRESET
				? "accepted the connection and closed it. Is it a memcached server?"
				: "did not answer within 5 s. Is it a memcached server, and does it "
				  "respond?");
			return -1;
		}
		have += (size_t)n;
		complete = reply_scan(protocol, scan, &at, reply + have);
	}
	reply[have] = 0;
	if (complete > 0)
		return 0;
	server_say(s, error, size, "is not a memcached server that uses %s: unexpected answer to \"version\"",
		   protocol_of(protocol)->name);
	return -1;
}

static int log_in(struct server *s, struct link *l, char *error, size_t size)
{
	const struct options *o = s->options;
	const struct protocol *protocol = protocol_of(o->protocol);
	const struct manner *m = s->conversation->manner;
	union reply_scanner scan;
	struct bytes request = {0};
	char reply[256];
	int rc = -1;

	if (!protocol->login(o->user, o->password, &request))
		snprintf(error, size, "out of memory while connecting");
	else if (ask(s, l, &(struct phrase){request.at, request.length}, &scan, reply, sizeof(reply), error,
		     size) == 0)
		rc = protocol->accepted(&scan) ? 0 : 1;
	if (rc == 1 && m->knows_no_login && m->knows_no_login(&scan))
		server_say(s, error, size,
			   "does not support logins. memcached needs to be started with -S for SASL");
	else if (rc == 1)
		server_say(s, error, size, "rejected the password of %s. It was read from %s", o->user,
			   o->password_file ? o->password_file : "the environment");
	if (request.at)
		explicit_bzero(request.at, request.length);
	free(request.at);
	return rc ? -1 : 0;
}

/* Connects and performs the set-up. The server's information is stored in *facts, if not NULL. NULL, and a
 * sentence. */
static struct link *enter(struct server *s, uint32_t number, struct server_facts *facts, char *error,
			  size_t size)
{
	const struct options *o = s->options;
	const struct protocol *protocol = protocol_of(o->protocol);
	const struct manner *m = s->conversation->manner;
	union reply_scanner scan;
	struct link *l = server_reach(s, number, error, size);
	char reply[256], answer[256];

	if (!l || ask(s, l, &m->version, &scan, reply, sizeof(reply), error, size))
		goto failed;
	if (o->user && log_in(s, l, error, size))
		goto failed;
	/* Its information may require the login first. */
	if (o->user && m->version_after_login &&
	    ask(s, l, &m->version, &scan, reply, sizeof(reply), error, size))
		goto failed;
	if (facts) {
		reply[strcspn(reply, "\r\n")] = 0;
		const char *version = m->version_of(reply);

		visible_text(facts->version, sizeof(facts->version), version, strlen(version));
	}
	if (m->noop.length && (m->noop_always || facts) && !protocol->wants_login(&scan) &&
	    ask(s, l, &m->noop, &scan, answer, sizeof(answer), error, size))
		goto failed;
	if (!o->user && protocol->wants_login(&scan)) {
		server_say(
		    s, error, size,
		    "requires a login. Set --user, and a password in FORKTAIL_PASSWORD or --password-file");
		goto failed;
	}
	if (m->understood && !m->understood(&scan)) {
		server_say(s, error, size,
			   "is a memcached without meta commands, which need version 1.6. Use --protocol "
			   "memcache_text");
		goto failed;
	}
	return l;
failed:
	link_free(l);
	return NULL;
}

static void greet(struct server *s)
{
	const struct options *o = s->options;

	s->greetings = 0;
	s->greeting.length = 0;
	if (o->user && protocol_of(o->protocol)->login(o->user, o->password, &s->greeting))
		s->greetings++;
}

static int probe(struct server *s, char *error, size_t size)
{
	struct link *l = enter(s, 0, &s->facts, error, size);

	link_free(l);
	return l ? 0 : -1;
}

static struct link *enter_plainly(struct server *s, uint32_t number, char *error, size_t size)
{
	return enter(s, number, NULL, error, size);
}

/* ---- the three protocols ---- */

static const char *version_in_line(const char *reply)
{
	return strncmp(reply, "VERSION ", 8) == 0 ? reply + 8 : "";
}

static const char *version_in_body(const char *reply)
{
	return reply + MEMCACHED_BINARY_HEADER;
}

static bool understood_meta(const union reply_scanner *s)
{
	return s->meta.kind == MEMCACHED_META_NOOP;
}

static bool knows_no_sasl(const union reply_scanner *s)
{
	return s->binary.kind == MEMCACHED_BINARY_UNKNOWN_COMMAND;
}

static const char binary_version[MEMCACHED_BINARY_HEADER] = {(char)0x80, 0x0b},
		  binary_noop[MEMCACHED_BINARY_HEADER] = {(char)0x80, 0x0a};

static const struct manner text = {
    .version = {"version\r\n", 9},
    .version_of = version_in_line,
    .version_after_login = true,
};
static const struct manner binary = {
    .version = {binary_version, sizeof(binary_version)},
    .noop = {binary_noop, sizeof(binary_noop)},
    .version_of = version_in_body,
    .knows_no_login = knows_no_sasl,
};
static const struct manner meta = {
    .version = {"version\r\n", 9},
    .noop = {"mn\r\n", 4},
    .version_of = version_in_line,
    .version_after_login = true,
    .noop_always = true,
    .understood = understood_meta,
};

const struct conversation converse_memcached_text = {greet,	    probe, enter_plainly,
						     enter_plainly, false, &text};
const struct conversation converse_memcached_binary = {greet,	      probe, enter_plainly,
						       enter_plainly, false, &binary};
const struct conversation converse_memcached_meta = {greet,	    probe, enter_plainly,
						     enter_plainly, false, &meta};

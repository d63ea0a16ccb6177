/* SPDX-License-Identifier: MIT */
/* Set-up of a connection to Redis. Every connection sends PING first, before any password: the peer must show
 * that it is a Redis server before it receives one. */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/text.h"
#include "conversation.h"
#include "loadgen/protocol.h"
#include "loadgen/server.h"
#include "recording/recording.h"

/* The name in CLIENT LIST, for operators. */
#define CONNECTION_NAME "forktail"

enum outcome { READY, FAILED, LOADING };

/* Stores why a link had no answer. */
static int no_answer(struct server *s, const struct link *l, char *error, size_t size)
{
	snprintf(s->why, sizeof(s->why), "%s", strerror(-l->failed));
	snprintf(error, size, "%s", link_error(l));
	return -1;
}

/* Stores how a server refused us. */
static void store_refusal(struct server *s, const char *command, const char *answer)
{
	s->refused = command;
	snprintf(s->why, sizeof(s->why), "%s", answer);
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* 1: PONG. 0: it requires a login first. -1: see `outcome` and error. */
static int ping(struct server *s, struct link *l, enum outcome *outcome, char *error, size_t size)
{
	static const char *const words[] = {"PING"};
	redisReply *r = link_ask(l, 1, words);
	int result = -1;

	*outcome = FAILED;
	if (!r)
		return no_answer(s, l, error, size);
	store_refusal(s, "PING",
		      r->type == REDIS_REPLY_ERROR ? r->str : "the answer is not from a Redis server");
	if (r->type == REDIS_REPLY_STATUS && strcasecmp(r->str, "PONG") == 0)
		result = 1;
	else if (r->type == REDIS_REPLY_ERROR && begins(r->str, "NOAUTH"))
		result = 0;
	else if (r->type == REDIS_REPLY_ERROR && (s->accepts_loading || begins(r->str, "NOPERM")))
		result = 1; /* a user that may not use PING may still be allowed the other commands */
	else if (r->type == REDIS_REPLY_ERROR && begins(r->str, "LOADING"))
		*outcome = LOADING;
	else
		server_say(s, error, size, "refused the connection: %.150s",
			   r->str ? r->str : "unexpected answer to PING");
	if (result == 1)
		s->refused = NULL;
	freeReplyObject(r);
	return result;
}

static int login(struct server *s, struct link *l, char *error, size_t size)
{
	const struct options *o = s->options;
	const char *words[3] = {"AUTH", o->user ? o->user : o->password, o->password};
	redisReply *r;
	int result = -1;

	r = link_ask(l, o->user ? 3 : 2, words);
	if (!r)
		return no_answer(s, l, error, size);
	if (r->type != REDIS_REPLY_ERROR)
		result = 0;
	else if (begins(r->str, "WRONGPASS") || begins(r->str, "ERR invalid password"))
		server_say(s, error, size, "rejected the password of %s. It was read from %s",
			   o->user ? o->user : "the default user",
			   o->password_file ? o->password_file : "the environment");
	else if (strstr(r->str, "without any password configured"))
		result = 0; /* harmless: the server needs no password */
	else
		server_say(s, error, size, "rejected the login: %.150s", r->str);
	if (result)
		store_refusal(s, "AUTH", r->str);
	freeReplyObject(r);
	return result;
}

static int choose_database(const struct server *s, struct link *l, char *error, size_t size)
{
	const struct options *o = s->options;
	char number[16];
	const char *words[2] = {"SELECT", number};
	redisReply *r;
	int result = -1;

	if (o->database == 0)
		return 0;
	snprintf(number, sizeof(number), "%u", o->database);
	r = link_ask(l, 2, words);
	if (!r)
		snprintf(error, size, "%s", link_error(l));
	else if (r->type == REDIS_REPLY_ERROR)
		server_say(s, error, size, "refused database %u: %.150s", o->database, r->str);
	else
		result = 0;
	if (r)
		freeReplyObject(r);
	return result;
}

/* So that a cluster's replica answers from its data instead of redirecting to its primary. */
static int ask_for_reads(struct link *l, char *error, size_t size)
{
	static const char *const words[] = {"READONLY"};
	redisReply *r = link_ask(l, 1, words);

	if (!r) {
		snprintf(error, size, "%s", link_error(l));
		return -1;
	}
	freeReplyObject(r);
	return 0;
}

/* Connects and performs the set-up. */
static struct link *enter(struct server *s, uint32_t number, enum outcome *outcome, char *error, size_t size)
{
	const struct options *o = s->options;
	struct link *l = server_reach(s, number, error, size);
	int welcome;

	*outcome = FAILED;
	s->refused = NULL;
	if (!l)
		return NULL;
	welcome = ping(s, l, outcome, error, size);
	if (welcome < 0)
		goto failed;
	*outcome = FAILED;
	if (welcome == 0 && !o->password) {
		server_say(s, error, size,
			   "requires a password. Set FORKTAIL_PASSWORD or use --password-file");
		goto failed;
	}
	if (o->password && login(s, l, error, size))
		goto failed;
	if (welcome == 0 && ping(s, l, outcome, error, size) != 1) {
		if (*outcome != LOADING && !*error)
			server_say(s, error, size, "still requires a login after AUTH");
		goto failed;
	}
	*outcome = FAILED;
	s->refused = NULL;
	if (choose_database(s, l, error, size) || (s->readonly && ask_for_reads(l, error, size)))
		goto failed;
	*outcome = READY;
	return l;
failed:
	link_free(l);
	return NULL;
}

static struct link *enter_ready(struct server *s, uint32_t number, char *error, size_t size)
{
	enum outcome outcome;
	struct link *l;

	l = enter(s, number, &outcome, error, size);
	if (!l && outcome == LOADING)
		server_say(s, error, size, "started to load its data set");
	return l;
}

static void take_fact(const char *info, const char *name, char *out, size_t size)
{
	const char *at = strstr(info, name);
	size_t length;

	if (!at || (at != info && at[-1] != '\n'))
		return;
	at += strlen(name);
	length = strcspn(at, "\r\n");
	visible_text(out, size, at, length);
}

/* Without the right to INFO we lack these facts, but the run continues. */
static void ask_facts(struct link *l, struct server_facts *f)
{
	static const char *const words[] = {"INFO"};
	redisReply *r = link_ask(l, 1, words);

	if (r && r->type == REDIS_REPLY_STRING) {
		take_fact(r->str, "redis_version:", f->version, sizeof(f->version));
		take_fact(r->str, "redis_mode:", f->mode, sizeof(f->mode));
		take_fact(r->str, "os:", f->os, sizeof(f->os));
		take_fact(r->str, "run_id:", f->run_id, sizeof(f->run_id));
		take_fact(r->str, "role:", f->role, sizeof(f->role));
		take_fact(r->str, "process_id:", f->process_id, sizeof(f->process_id));
	}
	if (r)
		freeReplyObject(r);
}

/* Names a connection, so that an operator recognizes it; a refusal is harmless. False: no answer, and the
 * connection can't be used any more. */
static bool name_connection(struct link *l)
{
	static const char *const words[] = {"CLIENT", "SETNAME", CONNECTION_NAME};
	redisReply *r = link_ask(l, 3, words);

	if (!r)
		return false;
	freeReplyObject(r);
	return true;
}

/* Adds a command to the greeting. */
__attribute__((format(printf, 2, 3))) static void greet_with(struct server *s, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = redisvFormatCommand(&text, format, args);
	va_end(args);
	if (n > 0 && bytes_reserve(&s->greeting, (size_t)n)) {
		bytes_add(&s->greeting, text, (size_t)n);
		s->greetings++;
	}
	redisFreeCommand(text);
}

static void greet(struct server *s)
{
	const struct options *o = s->options;

	s->greetings = 0;
	s->greeting.length = 0;
	if (o->password && protocol_of(o->protocol)->login(o->user, o->password, &s->greeting))
		s->greetings++;
	if (o->database)
		greet_with(s, "SELECT %u", o->database);
	if (s->readonly)
		greet_with(s, "READONLY");
	if (o->resp3)
		s->greetings += resp3_greeting(o->tracking, o->broadcast, &s->greeting);
	if (!s->nameless)
		greet_with(s, "CLIENT SETNAME " CONNECTION_NAME);
}

static int probe(struct server *s, char *error, size_t size)
{
	uint64_t give_up_ns = ft_now_ns() + s->options->loading_ns;
	enum outcome outcome;
	bool message_printed = false;
	struct link *l;

	for (;;) {
		*error = 0;
		l = enter(s, 0, &outcome, error, size);
		if (outcome == READY && !s->nameless && !name_connection(l)) {
			link_free(l);
			s->nameless = true;
			greet(s);
			continue;
		}
		if (outcome == READY) {
			ask_facts(l, &s->facts);
			link_free(l);
			return 0;
		}
		if (outcome == FAILED)
			return -1;
		if (ft_now_ns() >= give_up_ns) {
			server_say(s, error, size,
				   "is still loading its data set after %.0f s (--loading-wait)",
				   (double)s->options->loading_ns * 1e-9);
			return -1;
		}
		if (!message_printed)
			fprintf(stderr,
				"forktail load: the server is loading its data set; waiting up to %.0f s\n",
				(double)s->options->loading_ns * 1e-9);
		message_printed = true;
		usleep(100000);
	}
}

static struct link *connect_named(struct server *s, uint32_t number, char *error, size_t size)
{
	const struct options *o = s->options;
	struct link *l = enter_ready(s, number, error, size);
	char what[256];

	if (l && !s->nameless && !name_connection(l)) {
		link_free(l);
		s->nameless = true;
		greet(s);
		*error = 0;
		l = enter_ready(s, number, error, size);
	}
	if (l && o->resp3 && resp3_begin(l, o->tracking, o->broadcast, what, sizeof(what))) {
		server_say(s, error, size, "%s", what);
		link_free(l);
		return NULL;
	}
	return l;
}

const struct conversation converse_redis = {
    .greet = greet,
    .probe = probe,
    .enter = enter_ready,
    .connect = connect_named,
    .names = true,
};

/* HELLO 3 and CLIENT TRACKING, written and read with our own scanner. They are last in the set-up, so that
 * hiredis, which knows RESP2 only, has read all other answers. Answers are read byte by byte: an invalidation
 * may follow the last one directly, and belongs to the load. */

#define HELLO "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"
#define TRACKING "*3\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n"
#define BROADCAST "*4\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n$5\r\nBCAST\r\n"

/* Reads the answer to one command. 1: success, 0: an error, -1: none. */
static int ask(struct link *l, const char *command, struct resp_scanner *s)
{
	uint64_t deadline_ns = ft_now_ns() + (l->patience_ns ? l->patience_ns : LINK_ANSWER_NS);
	int complete = 0;
	char byte;

	if (link_send(l, command, strlen(command), deadline_ns))
		return -1;
	while (complete == 0 || complete == 2) {
		const char *at = &byte;

		if (link_receive(l, &byte, 1, deadline_ns) != 1)
			return -1;
		complete = resp_scan(s, &at, &byte + 1);
	}
	return complete < 0 ? -1 : s->kind != RESP_ERROR;
}

int resp3_begin(struct link *l, bool tracking, bool broadcast, char *what, size_t size)
{
	struct resp_scanner s = {0};
	int rc = ask(l, HELLO, &s);

	if (rc == 0)
		snprintf(what, size, "rejected HELLO 3 (%s %s). Redis supports RESP3 from version 6.0",
			 s.word, s.rest);
	else if (rc < 0)
		snprintf(what, size, "did not answer HELLO 3. Redis supports RESP3 from version 6.0");
	if (rc != 1)
		return -1;
	if (!tracking)
		return 0;
	rc = ask(l, broadcast ? BROADCAST : TRACKING, &s);
	if (rc == 0)
		snprintf(what, size, "rejected CLIENT TRACKING: %s %s", s.word, s.rest);
	else if (rc < 0)
		snprintf(what, size, "did not answer CLIENT TRACKING");
	return rc == 1 ? 0 : -1;
}

uint8_t resp3_greeting(bool tracking, bool broadcast, struct bytes *to)
{
	const char *track = !tracking ? "" : broadcast ? BROADCAST : TRACKING;

	if (!bytes_reserve(to, strlen(HELLO) + strlen(track)))
		return 0;
	bytes_add(to, HELLO, strlen(HELLO));
	bytes_add(to, track, strlen(track));
	return tracking ? 2 : 1;
}

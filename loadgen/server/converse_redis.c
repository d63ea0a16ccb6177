/* SPDX-License-Identifier: MIT */
/* Set-up over a link (link.h). Every connection asks PING first, before any password is sent:
 * whatever listens there has to show that it is a Redis before it gets to see one. */
#include "connect.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#include "connect_parts.h"
#include "memcached_login.h"
#include "recording/recording.h"
#include "setup_resp3.h"

enum { SPARE_DESCRIPTORS = 64 };

/* What an operator sees in CLIENT LIST. */
#define CONNECTION_NAME "forktail"

enum outcome { READY, FAILED, LOADING };

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

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* 1: PONG. 0: it wants a login first. -1: see `outcome` and error. */
static int ping(const struct server *s, struct link *l, enum outcome *outcome, char *error, size_t size)
{
	static const char *const words[] = {"PING"};
	redisReply *r = link_ask(l, 1, words);
	int result = -1;

	*outcome = FAILED;
	if (!r) {
		snprintf(error, size, "%s", link_error(l));
		return -1;
	}
	if (r->type == REDIS_REPLY_STATUS && strcasecmp(r->str, "PONG") == 0)
		result = 1;
	else if (r->type == REDIS_REPLY_ERROR && begins(r->str, "NOAUTH"))
		result = 0;
	else if (r->type == REDIS_REPLY_ERROR && begins(r->str, "NOPERM"))
		result = 1; /* a user that may not PING may still do what is asked of it */
	else if (r->type == REDIS_REPLY_ERROR && begins(r->str, "LOADING"))
		*outcome = LOADING;
	else
		server_say(s, error, size, "turned us away: %.150s",
			   r->str ? r->str : "it answered PING oddly");
	freeReplyObject(r);
	return result;
}

static int login(const struct server *s, struct link *l, char *error, size_t size)
{
	const struct options *o = s->options;
	const char *words[3] = {"AUTH", o->user ? o->user : o->password, o->password};
	redisReply *r;
	int result = -1;

	r = link_ask(l, o->user ? 3 : 2, words);
	if (!r) {
		snprintf(error, size, "%s", link_error(l));
		return -1;
	}
	if (r->type != REDIS_REPLY_ERROR)
		result = 0;
	else if (begins(r->str, "WRONGPASS") || begins(r->str, "ERR invalid password"))
		server_say(s, error, size, "refused the password of %s; it came from %s",
			   o->user ? o->user : "the default user",
			   o->password_file ? o->password_file : "the environment");
	else if (strstr(r->str, "without any password configured"))
		result = 0; /* harmless: the server is open */
	else
		server_say(s, error, size, "refused the login: %.150s", r->str);
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
		server_say(s, error, size, "has no database %u for us: %.150s", o->database, r->str);
	else
		result = 0;
	if (r)
		freeReplyObject(r);
	return result;
}

/* So that a cluster's replica answers what it has, in place of sending us to its primary. */
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

const char *server_tls_name(const struct server *s)
{
	if (!s->address.tls)
		return NULL;
	return s->address.socket ? "" : s->address.host;
}

/* Has the TLS handshake, where there is to be one. */
static int secure(struct server *s, struct link *l, uint64_t deadline_ns, char *error, size_t size)
{
	if (!s->address.tls)
		return 0;
	if (tls_begin(&s->options->tls, error, size))
		return -1;
	if (link_secure(l, server_tls_name(s), deadline_ns) == 0)
		return 0;
	server_say(s, error, size, "%s", l->error);
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
	l->patience_ns = s->patience_ns;
	address_text(a, l->where, sizeof(l->where));
	if (!s->found &&
	    socket_find(a->host, a->port, a->socket, TIMEOUT_S, &s->socket, why, sizeof(why)) == 0)
		s->found = true;
	if (s->found && (rc = link_open(l, &s->socket, number, deadline_ns)) != 0)
		snprintf(why, sizeof(why), "%s", strerror(-rc));
	if (l->fd >= 0) {
		if (secure(s, l, deadline_ns, error, size) == 0)
			return l;
		link_free(l);
		return NULL;
	}
	server_say(s, error, size, "can't be reached: %s; is %s running there?", why,
		   s->options->protocol == PROTOCOL_REDIS ? "redis-server" : "memcached");
	link_free(l);
	return NULL;
}

/* Connects and goes through the set-up. */
static struct link *enter(struct server *s, uint32_t number, enum outcome *outcome, char *error, size_t size)
{
	const struct options *o = s->options;
	struct link *l = server_reach(s, number, error, size);
	int welcome;

	*outcome = FAILED;
	if (!l)
		return NULL;
	welcome = ping(s, l, outcome, error, size);
	if (welcome < 0)
		goto failed;
	*outcome = FAILED;
	if (welcome == 0 && !o->password) {
		server_say(s, error, size, "wants a password: set FORKTAIL_PASSWORD or use --password-file");
		goto failed;
	}
	if (o->password && login(s, l, error, size))
		goto failed;
	if (welcome == 0 && ping(s, l, outcome, error, size) != 1) {
		if (*outcome != LOADING && !*error)
			server_say(s, error, size, "still wants a login after AUTH");
		goto failed;
	}
	*outcome = FAILED;
	if (choose_database(s, l, error, size) || (s->readonly && ask_for_reads(l, error, size)))
		goto failed;
	*outcome = READY;
	return l;
failed:
	link_free(l);
	return NULL;
}

struct link *server_enter(struct server *s, uint32_t number, char *error, size_t size)
{
	enum outcome outcome;
	struct link *l;

	*error = 0;
	l = enter(s, number, &outcome, error, size);
	if (!l && outcome == LOADING)
		server_say(s, error, size, "began to load its data set");
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
	snprintf(out, size, "%.*s", (int)length, at);
}

/* A user without the right to INFO costs us these facts, not the run. */
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

/* Names a connection, so that an operator knows whose it is; a refusal does no harm. False: there was no
 * answer, and the connection is of no further use. */
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
	if (n > 0)
		explicit_bzero(text, (size_t)n); /* it may be a login */
	redisFreeCommand(text);
}

static void make_greeting(struct server *s)
{
	const struct options *o = s->options;

	s->greetings = 0;
	s->greeting.length = 0;
	if (o->protocol != PROTOCOL_REDIS) {
		if (o->user && memcached_login_request(o->protocol, o->user, o->password, &s->greeting))
			s->greetings++;
		return;
	}
	if (o->password && o->user)
		greet_with(s, "AUTH %s %s", o->user, o->password);
	else if (o->password)
		greet_with(s, "AUTH %s", o->password);
	if (o->database)
		greet_with(s, "SELECT %u", o->database);
	if (s->readonly)
		greet_with(s, "READONLY");
	if (o->resp3)
		s->greetings += resp3_greeting(o->tracking, o->broadcast, &s->greeting);
	if (!s->nameless)
		greet_with(s, "CLIENT SETNAME " CONNECTION_NAME);
}

void server_init(struct server *s, const struct options *o, const struct server_address *address,
		 bool readonly)
{
	memset(s, 0, sizeof(*s));
	s->options = o;
	s->address = *address;
	s->address.tls |= o->tls.on; /* a topology's addresses do not tell */
	s->readonly = readonly;
	make_greeting(s);
}

int server_find(struct server *s, char *error, size_t size)
{
	char why[160];

	if (socket_resolve(s->address.host, s->address.port, s->address.socket, &s->socket, why,
			   sizeof(why))) {
		server_say(s, error, size, "can't be reached: %s", why);
		return -1;
	}
	s->found = true;
	return 0;
}

struct endpoint server_endpoint(const struct server *s)
{
	return (struct endpoint){
	    .socket = s->socket,
	    .tls_name = server_tls_name(s),
	    .greeting = s->greeting.at,
	    .greeting_bytes = s->greeting.length,
	    .greetings = s->greetings,
	    .named = s->options->protocol == PROTOCOL_REDIS && !s->nameless,
	};
}

int server_probe(struct server *s, const struct options *o, const struct server_address *address, char *error,
		 size_t size)
{
	uint64_t give_up_ns = ft_now_ns() + o->loading_ns;
	enum outcome outcome;
	bool told = false;
	struct link *l;

	server_init(s, o, address, false);
	*error = 0;
	if (o->protocol != PROTOCOL_REDIS) {
		l = enter_memcached(s, 0, &s->facts, error, size);
		link_free(l);
		return l ? 0 : -1;
	}
	for (;;) {
		*error = 0;
		l = enter(s, 0, &outcome, error, size);
		if (outcome == READY && !s->nameless && !name_connection(l)) {
			link_free(l);
			s->nameless = true;
			make_greeting(s);
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
				   (double)o->loading_ns * 1e-9);
			return -1;
		}
		if (!told)
			fprintf(stderr,
				"forktail-load: the server loads its data set; waiting up to %.0f s\n",
				(double)o->loading_ns * 1e-9);
		told = true;
		usleep(100000);
	}
}

void server_free(struct server *s)
{
	if (s->greeting.at)
		explicit_bzero(s->greeting.at, s->greeting.length);
	free(s->greeting.at);
	s->greeting = (struct bytes){0};
}

int server_connect(struct server *s, uint32_t number, char *error, size_t size)
{
	const struct options *o = s->options;
	struct link *l;
	char what[256];

	*error = 0;
	if (o->protocol != PROTOCOL_REDIS) {
		l = enter_memcached(s, number, NULL, error, size);
		return l ? link_release(l) : -1;
	}
	l = server_enter(s, number, error, size);
	if (l && !s->nameless && !name_connection(l)) {
		link_free(l);
		s->nameless = true;
		make_greeting(s);
		l = server_enter(s, number, error, size);
	}
	if (l && o->resp3 && resp3_begin(l, o->tracking, o->broadcast, what, sizeof(what))) {
		server_say(s, error, size, "%s", what);
		link_free(l);
		return -1;
	}
	return l ? link_release(l) : -1;
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
	snprintf(error, size, "%u connections need %llu file descriptors and the limit is %llu (ulimit -n)",
		 count, (unsigned long long)need, (unsigned long long)limit.rlim_max);
	return -1;
}

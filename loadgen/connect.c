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

#include "memcached_login.h"
#include "recording/recording.h"
#include "reply.h"
#include "setup_resp3.h"

enum {
	TIMEOUT_S = 5,
	SPARE_DESCRIPTORS = 64,
};

/* What an operator sees in CLIENT LIST. */
#define CONNECTION_NAME "forktail"

enum outcome { READY, FAILED, LOADING };

/* A sentence about the server, with its address in front. */
__attribute__((format(printf, 4, 5))) static void say(const struct server *s, char *error, size_t size,
						      const char *format, ...)
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
		say(s, error, size, "turned us away: %.150s", r->str ? r->str : "it answered PING oddly");
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
		say(s, error, size, "refused the password of %s; it came from %s",
		    o->user ? o->user : "the default user",
		    o->password_file ? o->password_file : "the environment");
	else if (strstr(r->str, "without any password configured"))
		result = 0; /* harmless: the server is open */
	else
		say(s, error, size, "refused the login: %.150s", r->str);
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
		say(s, error, size, "has no database %u for us: %.150s", o->database, r->str);
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
	say(s, error, size, "%s", l->error);
	return -1;
}

/* A link on which nothing was said yet. NULL, and a sentence. */
static struct link *reach(struct server *s, uint32_t number, char *error, size_t size)
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
	say(s, error, size, "can't be reached: %s; is %s running there?", why,
	    s->options->protocol == PROTOCOL_REDIS ? "redis-server" : "memcached");
	link_free(l);
	return NULL;
}

/* Connects and goes through the set-up. */
static struct link *enter(struct server *s, uint32_t number, enum outcome *outcome, char *error, size_t size)
{
	const struct options *o = s->options;
	struct link *l = reach(s, number, error, size);
	int welcome;

	*outcome = FAILED;
	if (!l)
		return NULL;
	welcome = ping(s, l, outcome, error, size);
	if (welcome < 0)
		goto failed;
	*outcome = FAILED;
	if (welcome == 0 && !o->password) {
		say(s, error, size, "wants a password: set FORKTAIL_PASSWORD or use --password-file");
		goto failed;
	}
	if (o->password && login(s, l, error, size))
		goto failed;
	if (welcome == 0 && ping(s, l, outcome, error, size) != 1) {
		if (*outcome != LOADING && !*error)
			say(s, error, size, "still wants a login after AUTH");
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
		say(s, error, size, "began to load its data set");
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
			say(s, error, size,
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
	say(s, error, size, "is no memcached that speaks %s: it answered \"version\" with something else",
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
		say(s, error, size, "knows no logins: a memcached has SASL when it is started with -S");
	else if (rc == 1)
		say(s, error, size, "refused the password of %s; it came from %s", o->user,
		    o->password_file ? o->password_file : "the environment");
	if (request.at)
		explicit_bzero(request.at, request.length);
	free(request.at);
	return rc ? -1 : 0;
}

/* memcached has no PING; it's asked for its version, before a password is sent. */
static struct link *enter_memcached(struct server *s, uint32_t number, struct server_facts *facts,
				    char *error, size_t size)
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
	struct link *l = reach(s, number, error, size);
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
			 is_text && begins(reply, "VERSION ") ? reply + 8
			 : is_text			      ? ""
							      : reply + 24);
	}
	/* Anybody may ask for the version; whether we are let in, or understood, shows with something else.
	 */
	if ((is_meta || (!is_text && facts)) && !memcached_login_wanted(o->protocol, &scan) &&
	    ask_memcached(s, l, noop, &scan, answer, sizeof(answer), error, size))
		goto failed;
	if (!o->user && memcached_login_wanted(o->protocol, &scan)) {
		say(s, error, size,
		    "wants a login: give --user, and a password in FORKTAIL_PASSWORD or --password-file");
		goto failed;
	}
	if (is_meta && scan.meta.kind != MEMCACHED_META_NOOP) {
		say(s, error, size,
		    "is a memcached without the meta commands, which came with 1.6; use --protocol "
		    "memcache_text");
		goto failed;
	}
	return l;
failed:
	link_free(l);
	return NULL;
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

static void make_greeting(struct server *s)
{
	const struct options *o = s->options;
	char number[16];
	char *text = NULL;
	int n = 0;

	s->greetings = 0;
	s->greeting.length = 0;
	if (o->protocol != PROTOCOL_REDIS) {
		if (o->user && memcached_login_request(o->protocol, o->user, o->password, &s->greeting))
			s->greetings++;
		return;
	}
	if (o->password) {
		n = o->user ? redisFormatCommand(&text, "AUTH %s %s", o->user, o->password)
			    : redisFormatCommand(&text, "AUTH %s", o->password);
		if (n > 0 && bytes_reserve(&s->greeting, (size_t)n)) {
			bytes_add(&s->greeting, text, (size_t)n);
			s->greetings++;
		}
		redisFreeCommand(text);
	}
	if (o->database) {
		snprintf(number, sizeof(number), "%u", o->database);
		n = redisFormatCommand(&text, "SELECT %s", number);
		if (n > 0 && bytes_reserve(&s->greeting, (size_t)n)) {
			bytes_add(&s->greeting, text, (size_t)n);
			s->greetings++;
		}
		redisFreeCommand(text);
	}
	if (s->readonly && bytes_reserve(&s->greeting, 32)) {
		bytes_add(&s->greeting, "*1\r\n$8\r\nREADONLY\r\n", 18);
		s->greetings++;
	}
	if (o->resp3)
		s->greetings += resp3_greeting(o->tracking, o->broadcast, &s->greeting);
	if (!s->nameless && (n = redisFormatCommand(&text, "CLIENT SETNAME " CONNECTION_NAME)) > 0) {
		if (bytes_reserve(&s->greeting, (size_t)n)) {
			bytes_add(&s->greeting, text, (size_t)n);
			s->greetings++;
		}
		redisFreeCommand(text);
	}
}

int server_init(struct server *s, const struct options *o, const struct server_address *address,
		bool readonly, char *error, size_t size)
{
	memset(s, 0, sizeof(*s));
	s->options = o;
	s->address = *address;
	s->address.tls |= o->tls.on; /* a topology's addresses do not tell */
	s->readonly = readonly;
	make_greeting(s);
	(void)error;
	(void)size;
	return 0;
}

int server_find(struct server *s, char *error, size_t size)
{
	char why[160];

	if (socket_resolve(s->address.host, s->address.port, s->address.socket, &s->socket, why,
			   sizeof(why))) {
		say(s, error, size, "can't be reached: %s", why);
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

	memset(s, 0, sizeof(*s));
	s->options = o;
	s->address = *address;
	s->address.tls |= o->tls.on; /* a topology's addresses do not tell */
	*error = 0;
	make_greeting(s);
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
			say(s, error, size, "is still loading its data set after %.0f s (--loading-wait)",
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
		say(s, error, size, "%s", what);
		link_free(l);
		return -1;
	}
	return l ? link_release(l) : -1;
}

/* Sends a command of our own `count` times, a thousand at a time; error replies end it. */
static int send_many(struct server *s, struct link *l, uint64_t count, int (*write)(char *, size_t, uint64_t),
		     char *error, size_t size)
{
	enum { AT_ONCE = 1000, COMMAND_BYTES = 128 };
	char *text = malloc(AT_ONCE * COMMAND_BYTES);
	uint64_t sent = 0, answered = 0;
	int rc = text ? 0 : -1;

	if (rc)
		snprintf(error, size, "not enough memory to prepare a test");
	while (rc == 0 && answered < count) {
		size_t length = 0;

		for (; sent < count && sent - answered < AT_ONCE; sent++)
			length += (size_t)write(text + length, COMMAND_BYTES, sent);
		if (link_send(l, text, length, ft_now_ns() + LINK_ANSWER_NS)) {
			say(s, error, size, "broke the connection while a test was prepared");
			rc = -1;
		}
		for (; rc == 0 && answered < sent; answered++) {
			redisReply *r = link_answer(l, "what a test needs");

			if (!r)
				snprintf(error, size, "%s", link_error(l));
			else if (r->type == REDIS_REPLY_ERROR)
				say(s, error, size, "refused what a test needs: %.150s", r->str);
			if (!r || r->type == REDIS_REPLY_ERROR)
				rc = -1;
			if (r)
				freeReplyObject(r);
		}
	}
	free(text);
	return rc;
}

static int write_element(char *out, size_t size, uint64_t i)
{
	return snprintf(out, size, "*3\r\n$5\r\nLPUSH\r\n$6\r\nmylist\r\n$20\r\nelement:%012llu\r\n",
			(unsigned long long)i);
}

static int write_member(char *out, size_t size, uint64_t i)
{
	return snprintf(out, size, "*3\r\n$4\r\nSADD\r\n$16\r\nset:%012llu\r\n$9\r\nmember:%02llu\r\n",
			(unsigned long long)(i / PREPARED_MEMBERS),
			(unsigned long long)(i % PREPARED_MEMBERS));
}

int server_prepare(struct server *s, enum preparation what, uint64_t keys, char *error, size_t size)
{
	struct link *l;
	int rc;

	*error = 0;
	if (what == PREPARE_NOTHING)
		return 0;
	l = server_enter(s, 0, error, size);
	if (!l)
		return -1;
	rc = what == PREPARE_LIST ? send_many(s, l, PREPARED_LIST, write_element, error, size)
				  : send_many(s, l, keys * PREPARED_MEMBERS, write_member, error, size);
	link_free(l);
	return rc;
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

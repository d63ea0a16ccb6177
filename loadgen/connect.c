/* SPDX-License-Identifier: MIT */
/* Set-up with hiredis' blocking calls. Every connection asks PING first, before any password is sent:
 * whatever listens there has to show that it is a Redis before it gets to see one. */
#include "connect.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "recording/recording.h"
#include "reply.h"

enum {
	TIMEOUT_S = 5,
	SPARE_DESCRIPTORS = 64,
	REPLY_BYTES_MAX = 1 << 20, /* of an answer to a set-up command; INFO has some 10 KB */
};

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

/* A server that has no room for us says so and closes, perhaps before our PING can be written; what it said
 * then still lies in the socket. */
static bool last_words(const redisContext *c, char *words, size_t size)
{
	ssize_t n = recv(c->fd, words, size - 1, MSG_DONTWAIT);

	words[n > 0 ? n : 0] = 0;
	words[strcspn(words, "\r\n")] = 0;
	return words[0] == '-';
}

/* Why a command on a connection that was there got no reply. */
static void say_no_reply(const struct server *s, const redisContext *c, char *error, size_t size)
{
	char words[160];

	if (c->err == REDIS_ERR_IO && (errno == EPIPE || errno == ECONNRESET) &&
	    last_words(c, words, sizeof(words)))
		say(s, error, size, "turned us away: %s", words + 1);
	else if (c->err == REDIS_ERR_PROTOCOL)
		say(s, error, size, "is no Redis: it answered PING with something else (%s)", c->errstr);
	else if (c->err == REDIS_ERR_EOF)
		say(s, error, size, "accepted the connection and closed it on PING; is that a Redis?");
	else if (c->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK))
		say(s, error, size, "did not answer PING within %d s; is that a Redis, and is it stuck?",
		    TIMEOUT_S);
	else
		say(s, error, size, "broke the connection: %s", c->errstr);
}

/* The answer to one command of ours. hiredis' own way of waiting keeps a reply of any length, and its
 * time-out begins anew with each byte; what listens there is not known to be a Redis yet, so both are bounded
 * here. */
static redisReply *command(redisContext *c, int count, const char *const *words)
{
	uint64_t give_up_ns = ft_now_ns() + TIMEOUT_S * 1000000000ull;
	size_t read = 0, before;
	void *reply = NULL;
	int written = 0;

	if (redisAppendCommandArgv(c, count, (const char **)words, NULL) != REDIS_OK)
		return NULL;
	while (!written)
		if (redisBufferWrite(c, &written) != REDIS_OK)
			return NULL;
	while (redisGetReplyFromReader(c, &reply) == REDIS_OK && !reply) {
		before = c->reader->len;
		if (redisBufferRead(c) != REDIS_OK)
			return NULL;
		read += c->reader->len - before;
		if (read > REPLY_BYTES_MAX) {
			c->err = REDIS_ERR_PROTOCOL;
			snprintf(c->errstr, sizeof(c->errstr), "more than %d bytes", REPLY_BYTES_MAX);
			return NULL;
		}
		if (ft_now_ns() >= give_up_ns) {
			c->err = REDIS_ERR_IO;
			errno = EAGAIN;
			snprintf(c->errstr, sizeof(c->errstr), "too slow");
			return NULL;
		}
	}
	return reply;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* 1: PONG. 0: it wants a login first. -1: see `outcome` and error. */
static int ping(const struct server *s, redisContext *c, enum outcome *outcome, char *error, size_t size)
{
	static const char *const words[] = {"PING"};
	redisReply *r = command(c, 1, words);
	int result = -1;

	*outcome = FAILED;
	if (!r) {
		say_no_reply(s, c, error, size);
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

static int login(const struct server *s, redisContext *c, char *error, size_t size)
{
	const struct options *o = s->options;
	const char *words[3] = {"AUTH", o->user ? o->user : o->password, o->password};
	redisReply *r;
	int result = -1;

	r = command(c, o->user ? 3 : 2, words);
	if (!r) {
		say_no_reply(s, c, error, size);
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

static int choose_database(const struct server *s, redisContext *c, char *error, size_t size)
{
	const struct options *o = s->options;
	char number[16];
	const char *words[2] = {"SELECT", number};
	redisReply *r;
	int result = -1;

	if (o->database == 0)
		return 0;
	snprintf(number, sizeof(number), "%u", o->database);
	r = command(c, 2, words);
	if (!r)
		say_no_reply(s, c, error, size);
	else if (r->type == REDIS_REPLY_ERROR)
		say(s, error, size, "has no database %u for us: %.150s", o->database, r->str);
	else
		result = 0;
	if (r)
		freeReplyObject(r);
	return result;
}

/* A socket on which nothing was said yet; blocking, with a time-out. -1, and a sentence. */
static int reach(struct server *s, uint32_t number, char *error, size_t size)
{
	const struct timeval timeout = {TIMEOUT_S, 0};
	const struct options *o = s->options;
	const struct server_address *a = &s->address;
	char why[160] = "";
	int fd = -1;

	if (!s->found) {
		if (socket_find(a->host, a->port, a->socket, TIMEOUT_S, &s->socket, why, sizeof(why))) {
			say(s, error, size, "can't be reached: %s; is %s running there?", why,
			    o->protocol == PROTOCOL_REDIS ? "redis-server" : "memcached");
			return -1;
		}
		s->found = true;
	}
	fd = socket_open(&s->socket, number, TIMEOUT_S);
	if (fd < 0) {
		say(s, error, size, "can't be reached: %s; is %s running there?", strerror(-fd),
		    o->protocol == PROTOCOL_REDIS ? "redis-server" : "memcached");
		return -1;
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	return fd;
}

static redisContext *reach_redis(struct server *s, uint32_t number, char *error, size_t size)
{
	int fd = reach(s, number, error, size);
	redisContext *c = fd >= 0 ? redisConnectFd(fd) : NULL;

	if (fd >= 0 && !c) {
		snprintf(error, size, "out of memory while connecting");
		close(fd);
	}
	return c;
}

/* Connects and goes through the set-up. */
static redisContext *enter(struct server *s, uint32_t number, enum outcome *outcome, char *error, size_t size)
{
	const struct options *o = s->options;
	redisContext *c = reach_redis(s, number, error, size);
	int welcome;

	*outcome = FAILED;
	if (!c)
		return NULL;
	welcome = ping(s, c, outcome, error, size);
	if (welcome < 0)
		goto failed;
	*outcome = FAILED;
	if (welcome == 0 && !o->password) {
		say(s, error, size, "wants a password: set FORKTAIL_PASSWORD or use --password-file");
		goto failed;
	}
	if (o->password && login(s, c, error, size))
		goto failed;
	if (welcome == 0 && ping(s, c, outcome, error, size) != 1) {
		if (*outcome != LOADING && !*error)
			say(s, error, size, "still wants a login after AUTH");
		goto failed;
	}
	*outcome = FAILED;
	if (choose_database(s, c, error, size))
		goto failed;
	*outcome = READY;
	return c;
failed:
	redisFree(c);
	return NULL;
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
static void ask_facts(redisContext *c, struct server_facts *f)
{
	static const char *const words[] = {"INFO"};
	redisReply *r = command(c, 1, words);

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

/* memcached has no PING; it's asked for its version. */
static int enter_memcached(struct server *s, uint32_t number, struct server_facts *facts, char *error,
			   size_t size)
{
	static const char text[] = "version\r\n", binary[24] = {(char)0x80, 0x0b};
	const struct options *o = s->options;
	bool is_text = o->protocol == PROTOCOL_MEMCACHE_TEXT;
	union reply_scanner scan = {0};
	int fd = reach(s, number, error, size), complete = 0;
	uint64_t give_up_ns = ft_now_ns() + TIMEOUT_S * 1000000000ull;
	char reply[256];
	size_t have = 0;

	if (fd < 0)
		return -1;
	if (send(fd, is_text ? text : binary, is_text ? sizeof(text) - 1 : sizeof(binary), MSG_NOSIGNAL) < 0)
		complete = -1;
	while (complete == 0 && have < sizeof(reply) - 1) {
		ssize_t n = recv(fd, reply + have, sizeof(reply) - 1 - have, 0);
		const char *at = reply + have;

		if (n <= 0 || ft_now_ns() >= give_up_ns) {
			say(s, error, size,
			    n == 0 ? "accepted the connection and closed it; is that a memcached?"
				   : "did not answer within 5 s; is that a memcached, and is it stuck?");
			close(fd);
			return -1;
		}
		have += (size_t)n;
		complete = reply_scan(o->protocol, &scan, &at, reply + have);
	}
	reply[have] = 0;
	if (complete <= 0) {
		say(s, error, size,
		    "is no memcached that speaks %s: it answered \"version\" with something else",
		    protocol_names[o->protocol]);
		close(fd);
		return -1;
	}
	if (facts) {
		reply[strcspn(reply, "\r\n")] = 0;
		snprintf(facts->version, sizeof(facts->version), "%.31s",
			 is_text && begins(reply, "VERSION ") ? reply + 8
			 : is_text			      ? ""
							      : reply + 24);
	}
	return fd;
}

static void make_greeting(struct server *s)
{
	const struct options *o = s->options;
	char number[16];
	char *text = NULL;
	int n = 0;

	s->greetings = 0;
	s->greeting.length = 0;
	if (o->protocol != PROTOCOL_REDIS)
		return;
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
}

int server_init(struct server *s, const struct options *o, const struct server_address *address, bool readonly,
		char *error, size_t size)
{
	memset(s, 0, sizeof(*s));
	s->options = o;
	s->address = *address;
	s->readonly = readonly;
	make_greeting(s);
	(void)error;
	(void)size;
	return 0;
}

int server_find(struct server *s, char *error, size_t size)
{
	char why[160];

	if (socket_resolve(s->address.host, s->address.port, s->address.socket, &s->socket, why, sizeof(why))) {
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
	    .greeting = s->greeting.at,
	    .greeting_bytes = s->greeting.length,
	    .greetings = s->greetings,
	};
}

int server_probe(struct server *s, const struct options *o, const struct server_address *address, char *error,
		 size_t size)
{
	uint64_t give_up_ns = ft_now_ns() + o->loading_ns;
	enum outcome outcome;
	bool told = false;
	int fd;

	memset(s, 0, sizeof(*s));
	s->options = o;
	s->address = *address;
	*error = 0;
	make_greeting(s);
	if (o->protocol != PROTOCOL_REDIS) {
		fd = enter_memcached(s, 0, &s->facts, error, size);
		if (fd >= 0)
			close(fd);
		return fd < 0 ? -1 : 0;
	}
	for (;;) {
		redisContext *c = (*error = 0, enter(s, 0, &outcome, error, size));

		if (outcome == READY) {
			ask_facts(c, &s->facts);
			redisFree(c);
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
	const struct timeval none = {0};
	enum outcome outcome = FAILED;
	redisContext *c;
	int fd;

	*error = 0;
	if (o->protocol == PROTOCOL_REDIS) {
		c = enter(s, number, &outcome, error, size);
		fd = c ? redisFreeKeepFd(c) : -1;
		if (!c && outcome == LOADING)
			say(s, error, size, "began to load its data set");
	} else {
		fd = enter_memcached(s, number, NULL, error, size);
	}
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none));
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK)) {
		say(s, error, size, "connection can't be set up: %s", strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

/* Sends a command of our own `count` times, a thousand at a time; error replies end it. */
static int send_many(struct server *s, redisContext *c, uint64_t count,
		     int (*append)(redisContext *, uint64_t), char *error, size_t size)
{
	uint64_t sent = 0, answered = 0;
	void *reply;

	while (answered < count) {
		while (sent < count && sent - answered < 1000)
			append(c, sent++);
		while (answered < sent) {
			if (redisGetReply(c, &reply) != REDIS_OK) {
				say(s, error, size, "broke the connection while a test was prepared: %s",
				    c->errstr);
				return -1;
			}
			answered++;
			if (((redisReply *)reply)->type == REDIS_REPLY_ERROR) {
				say(s, error, size, "refused what a test needs: %.150s",
				    ((redisReply *)reply)->str);
				freeReplyObject(reply);
				return -1;
			}
			freeReplyObject(reply);
		}
	}
	return 0;
}

static int append_element(redisContext *c, uint64_t i)
{
	return redisAppendCommand(c, "LPUSH mylist element:%012llu", (unsigned long long)i);
}

static int append_member(redisContext *c, uint64_t i)
{
	return redisAppendCommand(c, "SADD set:%012llu member:%02llu",
				  (unsigned long long)(i / PREPARED_MEMBERS),
				  (unsigned long long)(i % PREPARED_MEMBERS));
}

int server_prepare(struct server *s, enum preparation what, uint64_t keys, char *error, size_t size)
{
	enum outcome outcome;
	redisContext *c;
	int rc;

	*error = 0;
	if (what == PREPARE_NOTHING)
		return 0;
	c = enter(s, 0, &outcome, error, size);
	if (!c)
		return -1;
	rc = what == PREPARE_LIST ? send_many(s, c, PREPARED_LIST, append_element, error, size)
				  : send_many(s, c, keys * PREPARED_MEMBERS, append_member, error, size);
	redisFree(c);
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

/* A stand-in on hiredis until the set-up link of its own is there. */
#include "link.h"
struct link { redisContext *c; };
struct link *server_enter(struct server *s, uint32_t number, char *error, size_t size)
{
	enum outcome outcome;
	struct link *l;
	redisContext *c = enter(s, number, &outcome, error, size);

	if (!c)
		return NULL;
	l = malloc(sizeof(*l));
	l->c = c;
	return l;
}
redisReply *link_ask(struct link *l, int count, const char *const *words)
{
	return command(l->c, count, words);
}
const char *link_error(const struct link *l)
{
	return l->c->errstr;
}
void link_free(struct link *l)
{
	if (!l)
		return;
	redisFree(l->c);
	free(l);
}

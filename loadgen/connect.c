/* SPDX-License-Identifier: MIT */
/* Set-up with hiredis' blocking calls. Every connection asks PING first, before any password is sent:
 * whatever listens there has to show that it is a Redis before it gets to see one. */
#include "connect.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "recording/recording.h"

enum { TIMEOUT_S = 5, SPARE_DESCRIPTORS = 64 };

enum outcome { READY, FAILED, LOADING };

void server_address(const struct options *o, char *out, size_t size)
{
	if (o->socket)
		snprintf(out, size, "unix:%s", o->socket);
	else
		snprintf(out, size, strchr(o->host, ':') ? "[%s]:%u" : "%s:%u", o->host, o->port);
}

/* A sentence about the server, with its address in front. */
__attribute__((format(printf, 4, 5))) static void say(const struct options *o, char *error, size_t size,
						      const char *format, ...)
{
	char address[300];
	size_t length;
	va_list args;

	server_address(o, address, sizeof(address));
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
static void say_no_reply(const struct options *o, const redisContext *c, char *error, size_t size)
{
	char words[160];

	if (c->err == REDIS_ERR_IO && (errno == EPIPE || errno == ECONNRESET) &&
	    last_words(c, words, sizeof(words)))
		say(o, error, size, "turned us away: %s", words + 1);
	else if (c->err == REDIS_ERR_PROTOCOL)
		say(o, error, size, "is no Redis: it answered PING with something else (%s)", c->errstr);
	else if (c->err == REDIS_ERR_EOF)
		say(o, error, size, "accepted the connection and closed it on PING; is that a Redis?");
	else if (c->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK))
		say(o, error, size, "did not answer PING within %d s; is that a Redis, and is it stuck?",
		    TIMEOUT_S);
	else
		say(o, error, size, "broke the connection: %s", c->errstr);
}

static redisReply *command(redisContext *c, int count, const char *const *words)
{
	return redisCommandArgv(c, count, (const char **)words, NULL);
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* 1: PONG. 0: it wants a login first. -1: see `outcome` and error. */
static int ping(const struct options *o, redisContext *c, enum outcome *outcome, char *error, size_t size)
{
	static const char *const words[] = {"PING"};
	redisReply *r = command(c, 1, words);
	int result = -1;

	*outcome = FAILED;
	if (!r) {
		say_no_reply(o, c, error, size);
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
		say(o, error, size, "turned us away: %.150s", r->str ? r->str : "it answered PING oddly");
	freeReplyObject(r);
	return result;
}

static int login(const struct options *o, redisContext *c, char *error, size_t size)
{
	const char *words[3] = {"AUTH", o->user ? o->user : o->password, o->password};
	redisReply *r;
	int result = -1;

	r = command(c, o->user ? 3 : 2, words);
	if (!r) {
		say_no_reply(o, c, error, size);
		return -1;
	}
	if (r->type != REDIS_REPLY_ERROR)
		result = 0;
	else if (begins(r->str, "WRONGPASS") || begins(r->str, "ERR invalid password"))
		say(o, error, size, "refused the password of %s; it came from %s",
		    o->user ? o->user : "the default user",
		    o->password_file ? o->password_file : "the environment");
	else if (strstr(r->str, "without any password configured"))
		result = 0; /* harmless: the server is open */
	else
		say(o, error, size, "refused the login: %.150s", r->str);
	freeReplyObject(r);
	return result;
}

static int choose_database(const struct options *o, redisContext *c, char *error, size_t size)
{
	char number[16];
	const char *words[2] = {"SELECT", number};
	redisReply *r;
	int result = -1;

	if (o->database == 0)
		return 0;
	snprintf(number, sizeof(number), "%u", o->database);
	r = command(c, 2, words);
	if (!r)
		say_no_reply(o, c, error, size);
	else if (r->type == REDIS_REPLY_ERROR)
		say(o, error, size, "has no database %u for us: %.150s", o->database, r->str);
	else
		result = 0;
	if (r)
		freeReplyObject(r);
	return result;
}

static redisContext *reach(const struct options *o, char *error, size_t size)
{
	const struct timeval timeout = {TIMEOUT_S, 0};
	redisContext *c = o->socket ? redisConnectUnixWithTimeout(o->socket, timeout)
				    : redisConnectWithTimeout(o->host, (int)o->port, timeout);

	if (!c) {
		snprintf(error, size, "out of memory while connecting");
		return NULL;
	}
	if (c->err) {
		say(o, error, size, "can't be reached: %s; is redis-server running there?", c->errstr);
		redisFree(c);
		return NULL;
	}
	redisSetTimeout(c, timeout);
	return c;
}

/* Connects and goes through the set-up. */
static redisContext *enter(const struct options *o, enum outcome *outcome, char *error, size_t size)
{
	redisContext *c = reach(o, error, size);
	int welcome;

	*outcome = FAILED;
	if (!c)
		return NULL;
	welcome = ping(o, c, outcome, error, size);
	if (welcome < 0)
		goto failed;
	*outcome = FAILED;
	if (welcome == 0 && !o->password) {
		say(o, error, size, "wants a password: set FORKTAIL_PASSWORD or use --password-file");
		goto failed;
	}
	if (o->password && login(o, c, error, size))
		goto failed;
	if (welcome == 0 && ping(o, c, outcome, error, size) != 1) {
		if (*outcome != LOADING && !*error)
			say(o, error, size, "still wants a login after AUTH");
		goto failed;
	}
	*outcome = FAILED;
	if (choose_database(o, c, error, size))
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

int server_probe(const struct options *o, struct server_facts *facts, char *error, size_t size)
{
	uint64_t give_up_ns = ft_now_ns() + o->loading_ns;
	enum outcome outcome;
	bool told = false;

	memset(facts, 0, sizeof(*facts));
	for (;;) {
		redisContext *c = (*error = 0, enter(o, &outcome, error, size));

		if (outcome == READY) {
			ask_facts(c, facts);
			redisFree(c);
			return 0;
		}
		if (outcome == FAILED)
			return -1;
		if (ft_now_ns() >= give_up_ns) {
			say(o, error, size, "is still loading its data set after %.0f s (--loading-wait)",
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

int server_connect(const struct options *o, char *error, size_t size)
{
	enum outcome outcome;
	redisContext *c = (*error = 0, enter(o, &outcome, error, size));
	int fd;

	if (!c) {
		if (outcome == LOADING)
			say(o, error, size, "began to load its data set");
		return -1;
	}
	fd = redisFreeKeepFd(c);
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC)) {
		say(o, error, size, "connection can't be set up: %s", strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
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

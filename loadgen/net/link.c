/* SPDX-License-Identifier: MIT */
/* Waiting, sending and receiving with time-outs, and commands on top of them. */
#include "link.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recording/recording.h"

/* The first byte of a TLS server's answer to bytes it does not understand. */
enum { TLS_ALERT = 0x15, TLS_MAJOR = 3 };

/* Waits for `events` on fd, or without any, until the deadline. */
static int await(struct link *l, short events, uint64_t deadline_ns)
{
	struct pollfd fds[2] = {{.fd = l->stop_fd, .events = POLLIN}, {.fd = l->fd, .events = events}};

	for (;;) {
		uint64_t now_ns = ft_now_ns();
		uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
		struct timespec left = {.tv_sec = (time_t)(left_ns / 1000000000u),
					.tv_nsec = (long)(left_ns % 1000000000u)};
		int n = ppoll(fds, events ? 2 : 1, &left, NULL);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && fds[0].revents)
			return -ECANCELED;
		if (n > 0)
			return 0; /* the next call reports errors and hang-ups */
		if (left_ns == 0)
			return -ETIMEDOUT;
	}
}

int link_open(struct link *l, const struct server_socket *to, uint32_t number, uint64_t deadline_ns)
{
	bool pending;
	int rc;

	/* A Unix socket whose queue is full returns EAGAIN at once. The server will accept soon. */
	while ((l->fd = socket_begin(to, number, &pending)) == -EAGAIN && ft_now_ns() < deadline_ns)
		if (link_pause(l, ft_now_ns() + 1000000))
			return -ECANCELED;
	if (l->fd < 0) {
		rc = l->fd;
		l->fd = -1;
		return rc;
	}
	rc = pending ? await(l, POLLOUT, deadline_ns) : 0;
	if (rc == 0 && pending)
		rc = socket_result(l->fd);
	if (rc)
		link_close(l);
	return rc;
}

int link_secure(struct link *l, const char *name, uint64_t deadline_ns)
{
	int rc;

	l->tls = tls_session_new(name, l->fd);
	if (!l->tls) {
		snprintf(l->error, sizeof(l->error), "no TLS session: out of memory");
		return -ENOMEM;
	}
	while ((rc = tls_handshake(l->tls)) == -EAGAIN)
		if ((rc = await(l, tls_wants_write(l->tls) ? POLLOUT : POLLIN, deadline_ns)) != 0)
			break;
	if (rc == -ETIMEDOUT)
		snprintf(l->error, sizeof(l->error),
			 "did not finish the TLS handshake in time. Does it accept TLS on this port?");
	else if (rc)
		snprintf(l->error, sizeof(l->error), "%s", rc == -ECANCELED ? "" : tls_why(l->tls));
	return rc;
}

static ssize_t put(struct link *l, const char *bytes, size_t size)
{
	return l->tls ? tls_write(l->tls, bytes, size) : send(l->fd, bytes, size, MSG_NOSIGNAL);
}

static ssize_t get(struct link *l, char *bytes, size_t size)
{
	if (!l->tls)
		return recv(l->fd, bytes, size, 0);
	tls_wake(l->tls, false);
	return tls_read(l->tls, bytes, size);
}

/* What the next wait is for. */
static short wanted(const struct link *l, short plain)
{
	return l->tls && tls_wants_write(l->tls) ? POLLOUT : plain;
}

int link_send(struct link *l, const char *bytes, size_t size, uint64_t deadline_ns)
{
	while (size > 0) {
		ssize_t n = put(l, bytes, size);
		int rc;

		if (n >= 0) {
			bytes += n;
			size -= (size_t)n;
		} else if (errno == EAGAIN) {
			rc = await(l, POLLOUT, deadline_ns);
			if (rc)
				return rc;
		} else if (errno != EINTR) {
			return errno == EPIPE ? -ECONNRESET : -errno;
		}
	}
	return 0;
}

ssize_t link_receive(struct link *l, char *bytes, size_t size, uint64_t deadline_ns)
{
	/* Waits first, so that a stop is noticed even during an endless answer. What TLS has read from the
	 * socket is finite. */
	bool wait = !l->tls || !tls_has_unread(l->tls);

	for (;; wait = true) {
		int rc = wait ? await(l, wanted(l, POLLIN), deadline_ns) : 0;
		ssize_t n;

		if (rc)
			return rc;
		n = get(l, bytes, size);
		if (n > 0)
			return n;
		if (n == 0)
			return -ECONNRESET;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
}

int link_pause(struct link *l, uint64_t deadline_ns)
{
	int rc = await(l, 0, deadline_ns);

	return rc == -ETIMEDOUT ? 0 : rc;
}

void link_close(struct link *l)
{
	tls_session_free(l->tls);
	l->tls = NULL;
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	if (l->reader)
		redisReaderFree(l->reader);
	l->reader = NULL;
}

/* ---- commands ---- */

/* A sentence about the server, beginning with its address. */
__attribute__((format(printf, 2, 3))) static redisReply *fail(struct link *l, const char *format, ...)
{
	char what[300];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(l->error, sizeof(l->error), "%s %s", l->where, what);
	return NULL;
}

/* A server that refuses a connection says so and closes, perhaps before our command can be written. Its
 * message is still in the socket. */
static bool last_words(struct link *l, char *words, size_t size)
{
	ssize_t n = link_receive(l, words, size - 1, 0);

	words[n > 0 ? n : 0] = 0;
	words[strcspn(words, "\r\n")] = 0;
	return words[0] == '-';
}

static uint64_t patience_ns(const struct link *l)
{
	return l->patience_ns ? l->patience_ns : LINK_ANSWER_NS;
}

/* Why a command got no answer. */
static redisReply *no_answer(struct link *l, const char *name, int rc)
{
	char words[160];

	l->failed = rc;
	/* A server that requires a client certificate says so after the handshake, when we may be writing. */
	if (rc == -ECONNRESET && l->tls && link_receive(l, words, sizeof(words), 0) == -EPROTO)
		rc = -EPROTO;
	else if (rc == -ECONNRESET && last_words(l, words, sizeof(words)))
		return fail(l, "refused the connection: %s", words + 1);
	if (rc == -EPROTO && l->tls)
		return fail(l, "%s", tls_why(l->tls));
	if (rc == -ECONNRESET && l->tls)
		return fail(l, "closed the TLS connection on %s. Is it a Redis server?", name);
	if (rc == -ECONNRESET)
		return fail(l,
			    "accepted the connection and closed it on %s. Is it a Redis server? If it "
			    "requires TLS, use --tls",
			    name);
	if (rc == -ETIMEDOUT)
		return fail(l, "did not answer %s within %d s. Is it a Redis server, and does it respond?",
			    name, (int)(patience_ns(l) / 1000000000u));
	return fail(l, "broke the connection: %s", strerror(-rc));
}

/* It is another kind of server. */
static redisReply *not_redis(struct link *l, const char *name, const char *what)
{
	l->failed = -EPROTO;
	return fail(l, "is not a Redis server: unexpected answer to %s (%s)", name, what);
}

static redisReply *no_memory(struct link *l)
{
	l->failed = -ENOMEM;
	return fail(l, "no answer read: out of memory");
}

redisReply *link_answer(struct link *l, const char *name)
{
	uint64_t deadline_ns = ft_now_ns() + patience_ns(l);
	size_t received = 0, limit = l->answer_bytes ? l->answer_bytes : LINK_ANSWER_BYTES;
	void *reply = NULL;
	char bytes[16384];
	ssize_t n;

	if (!l->reader)
		l->reader = redisReaderCreate();
	if (!l->reader)
		return no_memory(l);
	for (;;) {
		if (redisReaderGetReply(l->reader, &reply) != REDIS_OK)
			return not_redis(l, name, l->reader->errstr);
		if (reply)
			return reply;
		if (received > limit) {
			snprintf(bytes, sizeof(bytes), "more than %zu bytes", limit);
			return not_redis(l, name, bytes);
		}
		n = ft_now_ns() < deadline_ns ? link_receive(l, bytes, sizeof(bytes), deadline_ns)
					      : -ETIMEDOUT;
		if (n < 0)
			return no_answer(l, name, (int)n);
		if (received == 0 && !l->tls && bytes[0] == TLS_ALERT && n > 1 && bytes[1] == TLS_MAJOR) {
			l->failed = -EPROTO;
			return fail(l, "answered %s in TLS. Use --tls", name);
		}
		received += (size_t)n;
		if (redisReaderFeed(l->reader, bytes, (size_t)n) != REDIS_OK)
			return no_memory(l);
	}
}

redisReply *link_ask(struct link *l, int count, const char *const *words)
{
	char *command = NULL;
	int size = redisFormatCommandArgv(&command, count, (const char **)words, NULL);
	int rc;

	if (size < 0)
		return no_memory(l);
	rc = link_send(l, command, (size_t)size, ft_now_ns() + patience_ns(l));
	explicit_bzero(command, (size_t)size); /* it may contain a password */
	redisFreeCommand(command);
	return rc ? no_answer(l, words[0], rc) : link_answer(l, words[0]);
}

const char *link_error(const struct link *l)
{
	return l->error;
}

bool link_has_more(const struct link *l)
{
	return l->reader && l->reader->len > l->reader->pos;
}

void link_free(struct link *l)
{
	if (!l)
		return;
	link_close(l);
	free(l);
}

int link_release(struct link *l)
{
	int fd = l->fd;

	if (l->tls && tls_hand_over(fd, l->tls)) {
		link_free(l);
		return -ENOMEM;
	}
	l->tls = NULL;
	l->fd = -1;
	link_free(l);
	return fd;
}

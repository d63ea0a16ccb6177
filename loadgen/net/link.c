/* SPDX-License-Identifier: MIT */
/* Waiting, sending and receiving with time-outs, and commands on top of them. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "loadgen/net.h"
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
	if (rc == -ECONNRESET && l->others)
		return fail(l,
			    "closed a connection on %s after %u others had been opened. Does it limit "
			    "connections (maxclients of redis-server, maxconn of a proxy)?",
			    name, l->others);
	if (rc == -ECONNRESET)
		return fail(l,
			    "accepted the connection and closed it on %s. Is it a Redis server? If it "
			    "requires TLS, use --tls",
			    name);
	if (rc == -ETIMEDOUT && l->others)
		return fail(
		    l,
		    "did not answer %s within %d s on a connection after %u others had been opened. Does "
		    "it limit connections (maxconn of a proxy), or hang?",
		    name, (int)(patience_ns(l) / 1000000000u), l->others);
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

/* Connecting does not wait, or with a time-out if the caller has nothing else to do (socket_open). Over
 * loopback, every 20,000 connections use another source address (127.0.0.2, ...), because one address has too
 * few ports for more. */

enum { CONNECTIONS_PER_SOURCE = 20000 };

static void unix_address(const char *path, struct server_socket *s)
{
	struct sockaddr_un *u = (struct sockaddr_un *)&s->address;

	memset(s, 0, sizeof(*s));
	u->sun_family = AF_UNIX;
	snprintf(u->sun_path, sizeof(u->sun_path), "%s", path);
	s->length = sizeof(*u);
}

static struct addrinfo *look_up(const char *host, uint32_t port, char *why, size_t size)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *all = NULL;
	char service[8];
	int rc;

	snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(host, service, &hints, &all);
	if (rc) {
		snprintf(why, size, "%s", rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
		return NULL;
	}
	return all;
}

int socket_resolve(const char *host, uint32_t port, const char *path, struct server_socket *out, int limit,
		   char *why, size_t size)
{
	struct addrinfo *all;
	int count = 0;

	if (path && strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		snprintf(why, size, "%s", strerror(ENAMETOOLONG));
		return -ENAMETOOLONG;
	}
	if (path) {
		unix_address(path, out);
		return 1;
	}
	all = look_up(host, port, why, size);
	for (struct addrinfo *a = all; a && count < limit; a = a->ai_next, count++) {
		memcpy(&out[count].address, a->ai_addr, a->ai_addrlen);
		out[count].length = a->ai_addrlen;
	}
	if (all)
		freeaddrinfo(all);
	return count ? count : -EHOSTUNREACH;
}

int socket_find(const char *host, uint32_t port, const char *path, unsigned timeout_s,
		struct server_socket *s, char *why, size_t size)
{
	struct addrinfo *all;
	int fd = -EADDRNOTAVAIL;

	if (path) {
		unix_address(path, s);
		fd = socket_open(s, 0, timeout_s);
	} else {
		all = look_up(host, port, why, size);
		if (!all)
			return -1;
		for (struct addrinfo *a = all; a && fd < 0; a = a->ai_next) {
			memcpy(&s->address, a->ai_addr, a->ai_addrlen);
			s->length = a->ai_addrlen;
			fd = socket_open(s, 0, timeout_s);
		}
		freeaddrinfo(all);
	}
	if (fd < 0) {
		snprintf(why, size, "%s", strerror(-fd));
		return -1;
	}
	close(fd);
	return 0;
}

/* Binds a loopback connection to a source address, by its number. */
static void choose_source(int fd, const struct server_socket *s, uint32_t number)
{
	const struct sockaddr_in *to = (const struct sockaddr_in *)&s->address;
	struct sockaddr_in from = {.sin_family = AF_INET};
	int one = 1;

	if (to->sin_family != AF_INET || ntohl(to->sin_addr.s_addr) >> 24 != 127 ||
	    number < CONNECTIONS_PER_SOURCE)
		return;
	from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + number / CONNECTIONS_PER_SOURCE);
	/* If either fails, connect() reports the problem. */
	if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one)) == 0)
		(void)!bind(fd, (const struct sockaddr *)&from, sizeof(from));
}

int socket_begin(const struct server_socket *s, uint32_t number, bool *pending)
{
	int fd = socket(s->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1, error;

	*pending = false;
	if (fd < 0)
		return -errno;
	if (s->address.ss_family != AF_UNIX) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		choose_source(fd, s, number);
	}
	if (connect(fd, (const struct sockaddr *)&s->address, s->length) == 0)
		return fd;
	error = errno;
	if (error == EINPROGRESS) {
		*pending = true;
		return fd;
	}
	close(fd);
	return -error;
}

int socket_result(int fd)
{
	socklen_t size = sizeof(int);
	int error = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
		return -errno;
	return -error;
}

int socket_open(const struct server_socket *s, uint32_t number, unsigned timeout_s)
{
	struct pollfd p = {.events = POLLOUT};
	bool pending;
	int fd, rc = 0;

	/* A Unix socket whose queue is full returns EAGAIN at once. The server will accept soon. */
	for (unsigned tries = 0;; tries++) {
		fd = socket_begin(s, number, &pending);
		if (fd != -EAGAIN || tries >= timeout_s * 1000)
			break;
		usleep(1000);
	}
	if (fd < 0 || !pending)
		return fd;
	p.fd = fd;
	rc = poll(&p, 1, (int)timeout_s * 1000);
	rc = rc > 0 ? socket_result(fd) : rc == 0 ? -ETIMEDOUT : -errno;
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

uint16_t socket_local_port(int fd)
{
	struct sockaddr_storage a;
	socklen_t size = sizeof(a);

	if (getsockname(fd, (struct sockaddr *)&a, &size))
		return 0;
	if (a.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *)&a)->sin_port);
	return a.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&a)->sin6_port) : 0;
}

uint64_t socket_inode(int fd)
{
	struct stat s;

	return fstat(fd, &s) == 0 ? s.st_ino : 0;
}

/* The difference between the clocks is known within half the time of reading them, some 20 to 50 ns. It is
 * read at most once per millisecond, which costs almost nothing. After the clock was set, timestamps may be
 * wrong for a millisecond, as may those of answers that were in the socket then. Implausible ones are
 * discarded. */

/* How far a timestamp may seem to be in the future: the error of the clocks' difference. */
#define SLACK_NS 1000u
#define LOOK_NS 1000000u

bool arrival_ask(int fd)
{
	int domain = 0, stamps = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
	socklen_t size = sizeof(domain);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) ||
	    (domain != AF_INET && domain != AF_INET6))
		return false;
	return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof(stamps)) == 0;
}

/* The timestamp in recvmsg()'s control data. */
static uint64_t stamp_of(struct msghdr *message)
{
	struct scm_timestamping stamps;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPING ||
		    c->cmsg_len < CMSG_LEN(sizeof(stamps)))
			continue;
		memcpy(&stamps, CMSG_DATA(c), sizeof(stamps));
		return (uint64_t)stamps.ts[0].tv_sec * 1000000000u + (uint64_t)stamps.ts[0].tv_nsec;
	}
	return 0;
}

ssize_t arrival_read(int fd, void *to, size_t size, uint64_t *stamp_ns)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct scm_timestamping))];
	} control;
	struct iovec bytes = {.iov_base = to, .iov_len = size};
	struct msghdr message = {
	    .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &message, 0);

	*stamp_ns = n > 0 ? stamp_of(&message) : 0;
	return n;
}

static uint64_t realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Of a few readings uses the fastest, because an interrupt may come between. */
static void look(struct arrival_clock *clock)
{
	uint64_t least_ns = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
		uint64_t before_ns = ft_now_ns(), at_ns = realtime_ns(), took_ns = ft_now_ns() - before_ns;

		if (took_ns >= least_ns)
			continue;
		least_ns = took_ns;
		clock->ahead_ns = at_ns - before_ns - took_ns / 2;
	}
}

uint64_t arrival_monotonic(struct arrival_clock *clock, uint64_t stamp_ns, uint64_t now_ns)
{
	uint64_t at_ns;

	if (stamp_ns == 0)
		return 0;
	if (clock->looked_ns == 0 || now_ns - clock->looked_ns >= LOOK_NS) {
		look(clock);
		clock->looked_ns = now_ns;
	}
	at_ns = stamp_ns - clock->ahead_ns;
	if (at_ns <= now_ns)
		return at_ns;
	return at_ns - now_ns <= SLACK_NS ? now_ns : 0;
}

/* SPDX-License-Identifier: MIT */
/* Connecting does not wait, or with a time-out if the caller has nothing else to do (socket_open). Over
 * loopback, every 20,000 connections use another source address (127.0.0.2, ...), because one address has too
 * few ports for more. */
#include "socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

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

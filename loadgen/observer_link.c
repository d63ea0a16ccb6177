/* SPDX-License-Identifier: MIT */
/* The observer's connection: a non-blocking socket, and poll() for whatever has to be waited for. hiredis'
 * own blocking calls can't be interrupted and time each read() by itself, so that a server that sends a byte
 * now and then holds them for ever. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "observer_parts.h"

int link_resolve(const struct observer_server *s, struct link_address *out, int limit)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	char port[16];
	int count = 0;

	if (s->socket) {
		struct sockaddr_un local = {.sun_family = AF_UNIX};

		if (strlen(s->socket) >= sizeof(local.sun_path))
			return -ENAMETOOLONG;
		strcpy(local.sun_path, s->socket);
		memcpy(&out->address, &local, sizeof(local));
		out->size = sizeof(local);
		return 1;
	}
	snprintf(port, sizeof(port), "%u", s->port);
	if (getaddrinfo(s->host, port, &hints, &found))
		return -EHOSTUNREACH;
	for (struct addrinfo *a = found; a && count < limit; a = a->ai_next, count++) {
		memcpy(&out[count].address, a->ai_addr, a->ai_addrlen);
		out[count].size = a->ai_addrlen;
	}
	freeaddrinfo(found);
	return count > 0 ? count : -EHOSTUNREACH;
}

/* Waits for `events` on fd, or, with none, for the deadline. */
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
			return 0; /* errors and hang-ups are told by the call that follows */
		if (left_ns == 0)
			return -ETIMEDOUT;
	}
}

int link_open(struct link *l, const struct link_address *a, uint64_t deadline_ns)
{
	int error = 0, rc;
	socklen_t size = sizeof(error);

	l->fd = socket(a->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return -errno;
	rc = connect(l->fd, (const struct sockaddr *)&a->address, a->size) ? -errno : 0;
	if (rc == -EINPROGRESS) {
		rc = await(l, POLLOUT, deadline_ns);
		if (rc == 0 && getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0)
			rc = -error;
	}
	if (rc)
		link_close(l);
	return rc;
}

int link_send(struct link *l, const char *bytes, size_t size, uint64_t deadline_ns)
{
	while (size > 0) {
		ssize_t n = send(l->fd, bytes, size, MSG_NOSIGNAL);
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
	/* Waits first: an endless answer must meet the stop, too. */
	for (;;) {
		int rc = await(l, POLLIN, deadline_ns);
		ssize_t n;

		if (rc)
			return rc;
		n = recv(l->fd, bytes, size, 0);
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
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

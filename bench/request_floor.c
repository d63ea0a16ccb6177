/* SPDX-License-Identifier: MIT */
/* The least that a request costs a client: only epoll_wait, read and write. It sends one request, always the
 * same, over 50 connections in batches. The reply's length is known, so nothing is parsed, timed or stored.
 * It works with any server whose protocol has such requests. It reads one reply first to learn its length.
 *
 *   request_floor unix:PATH|tcp:PORT REQUESTS PIPELINE SETUP REQUEST
 *
 * SETUP is sent once before ("" for nothing) and its reply is read. Both are text with \r, \n
 * and \xHH. Exit status 3 when the server cannot be reached or does not answer within ten seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "dial.h"

enum { CONNECTIONS = 50, PIPELINE_MAX = 200, REQUEST_MAX = 4096, FAILED = 3 };

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "request_floor: %s\n", what);
	exit(FAILED);
}

static int connected(const char *where)
{
	const struct timeval timeout = {10, 0};
	int fd = dial(where);

	if (fd < 0)
		fail("cannot connect to the server");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	return fd;
}

static size_t unescape(char *to, const char *from)
{
	char *begin = to;

	while (*from && to - begin < REQUEST_MAX) {
		if (*from != '\\') {
			*to++ = *from++;
		} else if (from[1] == 'x') {
			char hex[3] = {from[2], from[3], 0};
			*to++ = (char)strtol(hex, NULL, 16);
			from += 4;
		} else {
			*to++ = from[1] == 'r' ? '\r' : '\n';
			from += 2;
		}
	}
	return (size_t)(to - begin);
}

/* Sends one request and returns the length of its reply: everything until the server is silent for 50 ms. */
static size_t reply_length(int fd, const char *request, size_t bytes)
{
	static char buffer[1 << 16];
	size_t length = 0;
	ssize_t n;

	if (write(fd, request, bytes) != (ssize_t)bytes)
		fail("the server does not accept the request");
	n = read(fd, buffer, sizeof(buffer));
	if (n <= 0)
		fail("the server does not answer");
	for (; n > 0; n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT)) {
		length += (size_t)n;
		usleep(50000);
	}
	return length;
}

int main(int argc, char **argv)
{
	static char setup[REQUEST_MAX], request[REQUEST_MAX], batch[PIPELINE_MAX * REQUEST_MAX],
	    buffer[1 << 16];
	int fds[CONNECTIONS], ep = epoll_create1(0);
	size_t got[CONNECTIONS] = {0}, bytes, length, reply;
	long total, done = 0, depth;
	struct epoll_event events[CONNECTIONS];

	if (argc != 6 || (total = atol(argv[2])) < 1 || (depth = atol(argv[3])) < 1 || depth > PIPELINE_MAX) {
		fprintf(stderr, "usage: %s unix:PATH|tcp:PORT REQUESTS PIPELINE SETUP REQUEST\n", argv[0]);
		return 2;
	}
	bytes = unescape(request, argv[5]);
	for (long i = 0; i < depth; i++)
		memcpy(batch + (size_t)i * bytes, request, bytes);
	fds[0] = connected(argv[1]);
	length = unescape(setup, argv[4]);
	if (length)
		reply_length(fds[0], setup, length);
	reply = reply_length(fds[0], request, bytes) * (size_t)depth;
	for (int i = 0; i < CONNECTIONS; i++) {
		struct epoll_event e = {.events = EPOLLIN, .data.u32 = (unsigned)i};

		if (i > 0)
			fds[i] = connected(argv[1]);
		epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &e);
		(void)!write(fds[i], batch, bytes * (size_t)depth);
	}
	while (done < total) {
		int count = epoll_wait(ep, events, CONNECTIONS, 10000);

		if (count <= 0)
			fail("the server stopped answering");
		for (int k = 0; k < count; k++) {
			unsigned i = events[k].data.u32;
			ssize_t n = read(fds[i], buffer, sizeof(buffer));

			if (n <= 0)
				fail("the server closed a connection");
			got[i] += (size_t)n;
			if (got[i] < reply)
				continue;
			got[i] = 0;
			done += depth;
			(void)!write(fds[i], batch, bytes * (size_t)depth);
		}
	}
	return 0;
}

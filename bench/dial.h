/* SPDX-License-Identifier: MIT */
/* How the floors (request_floor.c, uring_floor.c) reach their server. */
#ifndef FORKTAIL_BENCH_DIAL_H
#define FORKTAIL_BENCH_DIAL_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Connects to "unix:PATH" or "tcp:PORT" on loopback. -1: it could not. */
static inline int dial(const char *where)
{
	struct sockaddr_un u = {.sun_family = AF_UNIX};
	struct sockaddr_in i = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(strncmp(where, "unix:", 5) == 0 ? AF_UNIX : AF_INET, SOCK_STREAM, 0), one = 1, rc;

	if (strncmp(where, "unix:", 5) == 0) {
		snprintf(u.sun_path, sizeof(u.sun_path), "%s", where + 5);
		rc = connect(fd, (struct sockaddr *)&u, sizeof(u));
	} else {
		i.sin_port = htons((unsigned short)atoi(where + 4));
		rc = connect(fd, (struct sockaddr *)&i, sizeof(i));
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	}
	return rc ? -1 : fd;
}

#endif

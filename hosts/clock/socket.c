/* SPDX-License-Identifier: MIT */
/* The kernel delivers only the peer's packets to a connected socket. */
#include "socket.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet.h"
#include "stamp.h"

/* Splits "host:port". Defaults: host "", port 7380. */
static bool split(const char *address, char host[256], char port[8])
{
	const char *close = address[0] == '[' ? strchr(address, ']') : NULL;
	const char *colon = strrchr(close ? close : address, ':');
	size_t length;

	if (address[0] == '[' && (!close || (close[1] && close[1] != ':')))
		return false;
	if (!close && colon && strchr(address, ':') != colon)
		colon = NULL; /* an IPv6 address without brackets */
	length = close ? (size_t)(close - address - 1) : colon ? (size_t)(colon - address) : strlen(address);
	if (length >= 256 || (colon && (strlen(colon + 1) > 5 || !colon[1])))
		return false;
	memcpy(host, address + (close != NULL), length);
	host[length] = 0;
	snprintf(port, 8, "%s", colon ? colon + 1 : CLOCK_PORT);
	return true;
}

static int open_one(const struct addrinfo *a, bool listen)
{
	int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), off = 0;

	if (fd < 0)
		return -1;
	if (a->ai_family == AF_INET6 && listen)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if ((listen ? bind(fd, a->ai_addr, a->ai_addrlen) : connect(fd, a->ai_addr, a->ai_addrlen)) == 0) {
		stamp_ask(fd);
		return fd;
	}
	listen = errno; /* close may change it */
	close(fd);
	errno = listen;
	return -1;
}

int udp_socket_open(const char *address, bool listen, char *error, size_t size)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = listen ? AI_PASSIVE : 0}, *all;
	char host[256], port[8];
	int fd = -1, rc;

	if (!split(address, host, port)) {
		snprintf(error, size, "'%s' is not an address: use HOST:PORT", address);
		return -1;
	}
	/* One socket for IPv4 and IPv6, if the host has IPv6. */
	if (listen && !host[0])
		hints.ai_family = AF_INET6;
	rc = getaddrinfo(host[0] ? host : NULL, port, &hints, &all);
	for (struct addrinfo *a = rc ? NULL : all; a && fd < 0; a = a->ai_next)
		fd = open_one(a, listen);
	if (fd < 0)
		snprintf(error, size, "cannot %s %s: %s", listen ? "listen on" : "reach", address,
			 rc ? gai_strerror(rc) : strerror(errno));
	if (rc == 0)
		freeaddrinfo(all);
	if (fd < 0 && listen && !host[0]) {
		char any[32];

		snprintf(any, sizeof(any), "0.0.0.0:%s", port);
		return udp_socket_open(any, true, error, size);
	}
	return fd;
}

int socket_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

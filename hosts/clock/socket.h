/* SPDX-License-Identifier: MIT */
/* UDP sockets by a name and a port as users write them: "host:7380", "[::1]:7380", "host", ":7380". */
#ifndef FORKTAIL_HOSTS_CLOCK_SOCKET_H
#define FORKTAIL_HOSTS_CLOCK_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

/* A socket that is bound to the address (listen; without a host: all of this one's), or connected to it. -1:
 * `error` holds one sentence. */
int udp_socket_open(const char *address, bool listen, char *error, size_t size);

/* SIGINT and SIGTERM are to be read rather than to end this; -1 where that fails. */
int socket_signals(void);

#endif

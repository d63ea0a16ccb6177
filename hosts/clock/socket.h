/* SPDX-License-Identifier: MIT */
/* UDP sockets for addresses as users write them: "host:7380", "[::1]:7380", "host", ":7380". */
#ifndef FORKTAIL_HOSTS_CLOCK_SOCKET_H
#define FORKTAIL_HOSTS_CLOCK_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

/* Returns a socket that is bound to the address (listen; without a host: all addresses) or connected to it.
 * -1: `error` is one sentence. */
int udp_socket_open(const char *address, bool listen, char *error, size_t size);

/* A descriptor to read SIGINT and SIGTERM from, which are blocked; -1 on failure. */
int socket_signals(void);

#endif

/* SPDX-License-Identifier: MIT */
/* What precedes the first bytes to a server of any kind: a connection, TLS if wanted, and messages that begin
 * with the address. */
#ifndef FORKTAIL_LOADGEN_REACH_H
#define FORKTAIL_LOADGEN_REACH_H

#include "connect.h"

/* For connecting, and for a memcached's answer. */
enum { REACH_TIMEOUT_S = 5 };

/* A sentence about the server, beginning with its address. */
__attribute__((format(printf, 4, 5))) void server_say(const struct server *s, char *error, size_t size,
						      const char *format, ...);
/* A link on which nothing was sent yet. NULL, and a sentence. */
struct link *server_reach(struct server *s, uint32_t number, char *error, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/* What connect.c and connect_memcached.c share, and what speaks of a server as they do. */
#ifndef FORKTAIL_LOADGEN_CONNECT_PARTS_H
#define FORKTAIL_LOADGEN_CONNECT_PARTS_H

#include "connect.h"

/* For connecting, and for a memcached's answer. */
enum { TIMEOUT_S = 5 };

/* A sentence about the server, with its address in front. */
__attribute__((format(printf, 4, 5))) void server_say(const struct server *s, char *error, size_t size,
						      const char *format, ...);
/* A link on which nothing was said yet. NULL, and a sentence. */
struct link *server_reach(struct server *s, uint32_t number, char *error, size_t size);

/* Connects to a memcached and goes through the set-up; what it says of itself goes to *facts, if that isn't
 * NULL. NULL, and a sentence. */
struct link *enter_memcached(struct server *s, uint32_t number, struct server_facts *facts, char *error,
			     size_t size);

#endif

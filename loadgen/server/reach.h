/* SPDX-License-Identifier: MIT */
/* What comes before anything is said to a server, whatever it speaks: a connection to it, TLS where that is
 * wanted, and the address in front of whatever is told about it. */
#ifndef FORKTAIL_LOADGEN_REACH_H
#define FORKTAIL_LOADGEN_REACH_H

#include "connect.h"

/* For connecting, and for a memcached's answer. */
enum { REACH_TIMEOUT_S = 5 };

/* A sentence about the server, with its address in front. */
__attribute__((format(printf, 4, 5))) void server_say(const struct server *s, char *error, size_t size,
						      const char *format, ...);
/* A link on which nothing was said yet. NULL, and a sentence. */
struct link *server_reach(struct server *s, uint32_t number, char *error, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/* Reaching the server: connect, prove that it is a Redis, log in, choose the database. All of it happens
 * before the load begins, with hiredis and its time-outs, and fails with one sentence for the user. */
#ifndef FORKTAIL_LOADGEN_CONNECT_H
#define FORKTAIL_LOADGEN_CONNECT_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What INFO says of the server; "" where it doesn't. */
struct server_facts {
	char version[32], mode[16], os[96], run_id[48], role[16], process_id[16];
};

/* "unix:/run/redis.sock", "127.0.0.1:6379" or "[::1]:6379". */
void server_address(const struct options *o, char *out, size_t size);

/* Is a ready Redis there that lets us in? Waits while it loads its data set, saying so on stderr. 0, or -1
 * and a sentence in `error`. */
int server_probe(const struct options *o, struct server_facts *facts, char *error, size_t size);

/* One connection, logged in, in the right database, non-blocking. The descriptor, or -1 and a sentence. */
int server_connect(const struct options *o, char *error, size_t size);

/* Makes room for `count` descriptors. 0, or -1 and a sentence. */
int descriptors_reserve(unsigned count, char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif

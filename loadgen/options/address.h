/* SPDX-License-Identifier: MIT */
/* Where a server is, and reading it from text: "host", "host:port", "[::1]:6379", "/run/redis.sock", or a URI
 * with %XX for bytes that mean something else there:
 *
 *   redis://[user[:password]@]host[:port][/database]   rediss://, the same over TLS
 *   unix://[user[:password]@]/path[?db=database]       memcached://[user[:password]@]host[:port]
 *
 * One parser for every place that takes an address, so that all of them take the same. */
#ifndef FORKTAIL_LOADGEN_ADDRESS_H
#define FORKTAIL_LOADGEN_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SERVERS_MAX = 256 };

/* A place, by reference: whoever made it keeps the strings. */
struct server_address {
	const char *host, *socket; /* a Unix socket's path wins when set */
	uint32_t port;
	bool tls;
};

/* "unix:/run/redis.sock", "127.0.0.1:6379" or "[::1]:6379". */
void address_text(const struct server_address *a, char *out, size_t size);

enum address_scheme { ADDRESS_PLAIN, ADDRESS_REDIS, ADDRESS_MEMCACHED };

/* What a text says. Its strings lie in `memory`. */
struct address {
	struct server_address server; /* port 0: the text names none */
	enum address_scheme scheme;   /* what it says of the protocol */
	const char *user, *password;  /* NULL: not named */
	bool has_database;
	uint32_t database;
	char *memory;
	size_t memory_bytes;
};

/* False, and a sentence about `text`, without its password, in `error`. address_free in both cases. */
bool address_parse(struct address *a, const char *text, char *error, size_t size);
void address_free(struct address *a);

#ifdef __cplusplus
}
#endif
#endif

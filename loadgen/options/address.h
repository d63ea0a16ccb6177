/* SPDX-License-Identifier: MIT */
/* The address of a server, parsed from text: "host", "host:port", "[::1]:6379", "/run/redis.sock", or a URI
 * with %XX for bytes that have a special meaning there:
 *
 *   redis://[user[:password]@]host[:port][/database]   rediss://, the same over TLS
 *   unix://[user[:password]@]/path[?db=database]       memcached://[user[:password]@]host[:port]
 *
 * All options that take an address use this parser, so all accept the same forms. */
#ifndef FORKTAIL_LOADGEN_ADDRESS_H
#define FORKTAIL_LOADGEN_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SERVERS_MAX = 256 };

/* An address by reference: its creator owns the strings. */
struct server_address {
	const char *host, *socket; /* a Unix socket's path takes precedence */
	uint32_t port;
	bool tls;
};

/* "unix:/run/redis.sock", "127.0.0.1:6379" or "[::1]:6379". */
void address_text(const struct server_address *a, char *out, size_t size);

enum address_scheme { ADDRESS_PLAIN, ADDRESS_REDIS, ADDRESS_MEMCACHED };

/* The parsed text. Its strings are in `memory`. */
struct address {
	struct server_address server; /* port 0: not in the text */
	enum address_scheme scheme;   /* the protocol that the scheme implies */
	const char *user, *password;  /* NULL: not named */
	bool has_database;
	uint32_t database;
	char *memory;
	size_t memory_bytes;
};

/* False, and a sentence about `text`, without its password, in `error`. Call address_free in both cases. */
bool address_parse(struct address *a, const char *text, char *error, size_t size);
void address_free(struct address *a);

#ifdef __cplusplus
}
#endif
#endif

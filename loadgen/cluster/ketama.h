/* SPDX-License-Identifier: MIT */
/* Distributes keys over several servers by consistent hashing in twemproxy's default way (distribution
 * ketama, hash fnv1a_64, weight 1), so that a key goes to the same server with and without the proxy. Each
 * server has 160 points on a ring of 32 bits: the four little-endian words of MD5("name-i") for i below 40.
 * Its name is "host:port", the host alone if the port is 11211 (as in libmemcached), or the path of a Unix
 * socket. A key belongs to the first point at or after its hash: FNV-1a with the 64-bit basis and prime, both
 * truncated to 32 bits. Source: twemproxy's notes on ketama and its observable behaviour, checked against a
 * nutcracker in tests/system/load/servers_test.cc. */
#ifndef FORKTAIL_LOADGEN_KETAMA_H
#define FORKTAIL_LOADGEN_KETAMA_H

#include <stddef.h>
#include <stdint.h>

#include "loadgen/options/address.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ketama {
	struct ketama_point {
		uint32_t value;
		uint16_t server;
	} * points;
	uint32_t count;
};

/* The name of a server in twemproxy's ring, unless it has an explicit name (ketama.h). */
void ketama_name(const struct server_address *a, char *out, size_t size);
/* `names`: of the servers, as above. -ENOMEM, or -EIO if this host's OpenSSL has no MD5. */
int ketama_init(struct ketama *k, const char *const *names, uint32_t count);
void ketama_free(struct ketama *k);

uint32_t ketama_hash(const char *key, size_t length);
/* Returns the number of the key's server. */
uint32_t ketama_server(const struct ketama *k, const char *key, size_t length);

#ifdef __cplusplus
}
#endif
#endif

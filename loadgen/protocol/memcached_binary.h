/* SPDX-License-Identifier: MIT */
/* A scanner of memcached's binary replies for the hot path: finds the end and status of each reply in the
 * read buffer, without allocation. It works like resp.h. Every reply is a header of 24 bytes, numbers in
 * network order, and a body of the length given there. Each header counts as one reply: the caller handles
 * the several replies to a "stat" and their end. */
#ifndef FORKTAIL_LOADGEN_MEMCACHED_BINARY_H
#define FORKTAIL_LOADGEN_MEMCACHED_BINARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	MEMCACHED_BINARY_HEADER = 24,
	MEMCACHED_BINARY_BODY = 1 << 30, /* largest body; memcached's largest value is just below 1 GiB */
};

enum memcached_binary_kind {
	MEMCACHED_BINARY_NONE, /* of a scanner that has seen no reply */
	MEMCACHED_BINARY_OK,
	MEMCACHED_BINARY_MISS,	 /* no such key */
	MEMCACHED_BINARY_EXISTS, /* it exists, or has changed since it was read for cas */
	MEMCACHED_BINARY_NOT_STORED,
	MEMCACHED_BINARY_OUT_OF_MEMORY,
	MEMCACHED_BINARY_UNKNOWN_COMMAND,
	MEMCACHED_BINARY_ERROR, /* any other status */
};

struct memcached_binary_scanner {
	uint32_t left;	 /* bytes of the body to skip */
	uint32_t opaque; /* as in the request: network order, for senders that use that order */
	uint16_t status;
	uint8_t opcode;
	uint8_t kind; /* enum memcached_binary_kind; valid once memcached_binary_scan returned 1 */
	uint8_t have; /* bytes of a split header; all of them while the body is skipped */
	uint8_t header[MEMCACHED_BINARY_HEADER];
};

/* A scanner at the beginning of a reply is all zeros, or in the state after memcached_binary_scan returned 1.
 * Opcode, status, opaque and kind then stay valid until the next call. */

/* Continues scanning from *at. 1: a reply is complete, *at is after it. 0: no more bytes (*at == end).
 * -1: not a reply; *at is at the offending byte. */
int memcached_binary_scan(struct memcached_binary_scanner *s, const char **at, const char *end);

/* The name of a status: "KEY_NOT_FOUND"; "UNKNOWN_STATUS" if memcached has none of this number. */
const char *memcached_binary_status_name(uint16_t status);

#ifdef __cplusplus
}
#endif
#endif

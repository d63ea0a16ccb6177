/* SPDX-License-Identifier: MIT */
/* A scanner of memcached's binary replies for the hot path: finds where each reply ends and what it says, in
 * the read buffer, without an allocation. See resp.h, whose manner it has.
 *
 * Every reply is a header of 24 bytes, numbers in network order, and as many bytes of body as it says. One
 * header is one reply here: the many replies to a "stat" are told apart, and their end seen, by the caller.
 */
#ifndef FORKTAIL_LOADGEN_MEMCACHED_BINARY_H
#define FORKTAIL_LOADGEN_MEMCACHED_BINARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	MEMCACHED_BINARY_HEADER = 24,
	MEMCACHED_BINARY_BODY =
	    1 << 30, /* a body's bytes at most; memcached's largest value is 1 GiB less some */
};

enum memcached_binary_kind {
	MEMCACHED_BINARY_NONE, /* of a scanner that has seen no reply */
	MEMCACHED_BINARY_OK,
	MEMCACHED_BINARY_MISS,	 /* there's no such key */
	MEMCACHED_BINARY_EXISTS, /* it does, or has changed since it was read for cas */
	MEMCACHED_BINARY_NOT_STORED,
	MEMCACHED_BINARY_OUT_OF_MEMORY,
	MEMCACHED_BINARY_UNKNOWN_COMMAND,
	MEMCACHED_BINARY_ERROR, /* any other status */
};

struct memcached_binary_scanner {
	uint32_t left;	 /* bytes of the body to skip */
	uint32_t opaque; /* as the request had it: network order, for whoever sent it in that order */
	uint16_t status;
	uint8_t opcode;
	uint8_t kind; /* enum memcached_binary_kind; valid once memcached_binary_scan returned 1 */
	uint8_t have; /* bytes of a cut header; all of them while the body is skipped */
	uint8_t header[MEMCACHED_BINARY_HEADER];
};

/* A scanner at the beginning of a reply is all zeros, or as memcached_binary_scan left it when it returned 1.
 * Opcode, status, opaque and kind then stay valid until the next call. */

/* Scans on from *at. 1: a reply is complete, *at is behind it. 0: the bytes ran out (*at == end).
 * -1: this is no reply; *at is at the offending byte. */
int memcached_binary_scan(struct memcached_binary_scanner *s, const char **at, const char *end);

/* What a status is called: "KEY_NOT_FOUND"; "UNKNOWN_STATUS" if memcached has none of this number. */
const char *memcached_binary_status_name(uint16_t status);

#ifdef __cplusplus
}
#endif
#endif

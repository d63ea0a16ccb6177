/* SPDX-License-Identifier: MIT */
/* A scanner of replies to memcached's meta commands for the hot path: finds the end and result of each reply
 * in the read buffer, without allocation. It works like resp.h. A reply is one line, a word of two letters
 * and flags, and after VA a value. Of the flags only O is read: the opaque number of the request, which
 * identifies its answer. The caller knows which kinds a command may get. */
#ifndef FORKTAIL_LOADGEN_MEMCACHED_META_H
#define FORKTAIL_LOADGEN_MEMCACHED_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memcached_line.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	MEMCACHED_META_OPAQUE_DIGITS = 18,
};

/* An O flag that isn't a number of up to MEMCACHED_META_OPAQUE_DIGITS digits: not one of ours. */
#define MEMCACHED_META_NO_NUMBER UINT64_MAX

enum memcached_meta_kind {
	MEMCACHED_META_NONE, /* of a scanner that has seen no reply */
	MEMCACHED_META_VALUE,
	MEMCACHED_META_DONE,	   /* HD */
	MEMCACHED_META_MISS,	   /* EN */
	MEMCACHED_META_NOT_FOUND,  /* NF */
	MEMCACHED_META_NOT_STORED, /* NS */
	MEMCACHED_META_EXISTS,	   /* EX */
	MEMCACHED_META_NOOP,	   /* MN */
	MEMCACHED_META_DEBUG,	   /* ME */
	MEMCACHED_META_VERSION,
	MEMCACHED_META_STORED, /* to the "set" that logs in, which is not a meta command */
	MEMCACHED_META_ERROR,
};

struct memcached_meta_scanner {
	uint64_t opaque; /* of the O flag, if there is one */
	uint32_t number; /* within a reply: the length being read, then the bytes to skip */
	uint8_t state;
	uint8_t type; /* the kind of the reply being scanned */
	uint8_t kind; /* enum memcached_meta_kind; valid once memcached_meta_scan returned 1 */
	uint8_t digits;
	bool has_opaque;
	struct memcached_line line; /* its word and explanation: of an ERROR */
};

/* A scanner at the beginning of a reply is all zeros, or in the state after memcached_meta_scan returned 1.
 * Its results then stay valid until the next call. */

/* Continues scanning from *at. 1: a reply is complete, *at is after it. 0: no more bytes (*at == end).
 * -1: not a reply; *at is at the offending byte. */
int memcached_meta_scan(struct memcached_meta_scanner *s, const char **at, const char *end);

#ifdef __cplusplus
}
#endif
#endif

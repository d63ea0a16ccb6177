/* SPDX-License-Identifier: MIT */
/* A scanner of the replies to memcached's meta commands for the hot path: finds where each reply ends and
 * what it says, in the read buffer, without an allocation. See resp.h, whose manner it has.
 *
 * A reply is one line, a word of two letters and flags, and after VA a value. Of the flags only O is read:
 * the opaque number that the request had, by which an answer is known to be the answer to it. Which kinds a
 * command may get is the caller's to know.
 */
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

/* Of an O flag that isn't a number of up to MEMCACHED_META_OPAQUE_DIGITS digits: none of ours. */
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
	MEMCACHED_META_STORED, /* to the "set" that logs in, which is no meta command */
	MEMCACHED_META_ERROR,
};

struct memcached_meta_scanner {
	uint64_t opaque; /* of the O flag, if there is one */
	uint32_t number; /* within a reply: the length being read, then the bytes to skip */
	uint8_t state;
	uint8_t type; /* what the reply being scanned is */
	uint8_t kind; /* enum memcached_meta_kind; valid once memcached_meta_scan returned 1 */
	uint8_t digits;
	bool has_opaque;
	struct memcached_line line; /* its word and explanation: of an ERROR */
};

/* A scanner at the beginning of a reply is all zeros, or as memcached_meta_scan left it when it returned 1.
 * What it then says of the reply stays valid until the next call. */

/* Scans on from *at. 1: a reply is complete, *at is behind it. 0: the bytes ran out (*at == end).
 * -1: this is no reply; *at is at the offending byte. */
int memcached_meta_scan(struct memcached_meta_scanner *s, const char **at, const char *end);

#ifdef __cplusplus
}
#endif
#endif

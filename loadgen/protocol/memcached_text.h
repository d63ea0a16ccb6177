/* SPDX-License-Identifier: MIT */
/* A scanner of memcached's text replies for the hot path: finds the end and result of each reply in the read
 * buffer, without allocation. It works like resp.h. A text reply does not name its command, and its end
 * depends on its kind: VALUE and STAT are followed by more lines up to END. The caller knows which kinds a
 * command may get. An error line instead of END also ends a reply: memcached sends it when it runs out of
 * memory between two values. */
#ifndef FORKTAIL_LOADGEN_MEMCACHED_TEXT_H
#define FORKTAIL_LOADGEN_MEMCACHED_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memcached_line.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	MEMCACHED_TEXT_KEY = 250, /* maximum size of a key, as in memcached */
};

enum memcached_text_kind {
	MEMCACHED_TEXT_NONE, /* of a scanner that has seen no reply */
	MEMCACHED_TEXT_HIT,  /* values, and END */
	MEMCACHED_TEXT_MISS, /* END alone */
	MEMCACHED_TEXT_STORED,
	MEMCACHED_TEXT_NOT_STORED,
	MEMCACHED_TEXT_EXISTS,
	MEMCACHED_TEXT_NOT_FOUND,
	MEMCACHED_TEXT_DELETED,
	MEMCACHED_TEXT_TOUCHED,
	MEMCACHED_TEXT_OK,
	MEMCACHED_TEXT_NUMBER,
	MEMCACHED_TEXT_VERSION,
	MEMCACHED_TEXT_STATS, /* STAT lines, and END */
	MEMCACHED_TEXT_ERROR,
};

struct memcached_text_scanner {
	uint64_t number; /* NUMBER's value. Within a reply: the number being read, then the bytes to skip */
	uint32_t values; /* number of values of a HIT */
	uint8_t state;
	uint8_t begun; /* HIT or STATS within such a reply, else 0 */
	uint8_t type;  /* the type of the line being scanned */
	uint8_t kind;  /* enum memcached_text_kind; valid once memcached_text_scan returned 1 */
	uint8_t digits;
	struct memcached_line line; /* its word and explanation: of an ERROR */
};

/* A scanner at the beginning of a reply is all zeros, or in the state after memcached_text_scan returned 1.
 * Its results then stay valid until the next call. */

/* Continues scanning from *at. 1: a reply is complete, *at is after it. 0: no more bytes (*at == end).
 * -1: not a reply; *at is at the offending byte. */
int memcached_text_scan(struct memcached_text_scanner *s, const char **at, const char *end);

#ifdef __cplusplus
}
#endif
#endif

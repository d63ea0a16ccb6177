/* SPDX-License-Identifier: MIT */
/* A scanner of Redis replies (RESP2) for the hot path: finds where each reply ends and what kind it is,
 * in the read buffer, without an allocation and without keeping any byte of it.
 *
 * A reply may be cut anywhere: the scanner keeps its place in a few bytes per connection, so no reply
 * has to be gathered before it's looked at, however large it is. Why not hiredis' reader here:
 * docs/loadgen-speed.md has what it costs; set-up commands use it.
 */
#ifndef FORKTAIL_LOADGEN_RESP_H
#define FORKTAIL_LOADGEN_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	RESP_DEPTH = 7, /* arrays within arrays at most, as in hiredis */
	RESP_WORD = 16, /* an error's first word is kept up to here, with its closing 0 */
	RESP_REST = 80, /* and what follows it: "3999 127.0.0.1:6381" after MOVED */
	RESP_NIL = 'n', /* kind of "$-1" and "*-1"; the other kinds are their type bytes */
};

struct resp_scanner {
	uint64_t
	    number; /* the length or count being read; then the bulk bytes still to skip, CRLF included */
	uint32_t left[RESP_DEPTH]; /* elements still to come, per open array */
	uint8_t state;
	uint8_t depth; /* open arrays */
	uint8_t type;  /* of the element being scanned */
	uint8_t kind;  /* of the whole reply: + - : $ * or RESP_NIL; valid once resp_scan returned 1 */
	uint8_t digits;
	bool negative;
	uint8_t word_length;
	uint8_t rest_length;
	char word[RESP_WORD]; /* first word of a top-level error: ERR, WRONGTYPE, ... */
	char rest[RESP_REST]; /* what follows, as far as there is room */
};

/* A scanner at the beginning of a reply is all zeros; it is so again after every complete one, but for
 * kind and word, which stay valid until the next call. */

/* Scans on from *at. 1: a reply is complete, *at is behind it. 0: the bytes ran out (*at == end).
 * -1: this is no reply; *at is at the offending byte. */
int resp_scan(struct resp_scanner *s, const char **at, const char *end);

#ifdef __cplusplus
}
#endif
#endif

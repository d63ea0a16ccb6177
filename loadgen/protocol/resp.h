/* SPDX-License-Identifier: MIT */
/* A scanner of Redis replies (RESP2 and RESP3) for the hot path: finds where each reply ends and what kind it
 * is, in the read buffer, without an allocation and without keeping any byte of it.
 *
 * It takes both protocols at once: RESP3's types are others than RESP2's, so nothing has to be known of what
 * HELLO chose. What RESP2 says in one type and RESP3 in another has one kind here. A push, which RESP3 may
 * put between any two replies, is told apart by the result; attributes, which may precede any element, are
 * skipped.
 *
 * A reply may be cut anywhere: the scanner keeps its place in a few bytes per connection, so no reply
 * has to be gathered before it's looked at, however large it is. Why not hiredis' reader here:
 * docs/results/speed.md has what it costs; set-up commands use it.
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
	RESP_DEPTH = 7, /* arrays, maps, sets and attributes within each other at most, as in hiredis */
	RESP_WORD = 16, /* an error's first word is kept up to here, with its closing 0 */
	RESP_REST = 80, /* and what follows it: "3999 127.0.0.1:6381" after MOVED */
};

/* Kinds of replies are the type bytes on the wire: others than these are kinds, too (a boolean, a double). */
enum resp_kind {
	RESP_LINE = '+',
	RESP_ERROR = '-', /* and "!" */
	RESP_INTEGER = ':',
	RESP_STRING = '$', /* and a verbatim one, "=" */
	RESP_ARRAY = '*',  /* and a map, and a set */
	RESP_PUSH = '>',
	RESP_ATTRIBUTE = '|',
	RESP_NIL = 'n', /* "$-1", "*-1" and "_" */
};

struct resp_scanner {
	uint64_t
	    number; /* the length or count being read; then the bulk bytes still to skip, CRLF included */
	uint32_t left[RESP_DEPTH]; /* elements still to come, per open aggregate */
	uint8_t state;
	uint8_t depth; /* open aggregates: arrays, maps, sets, pushes, attributes */
	uint8_t type;  /* of the element being scanned */
	uint8_t kind;  /* enum resp_kind of the whole reply; valid once resp_scan returned 1 */
	uint8_t digits;
	uint8_t attributes, streamed, pairs; /* a bit per open aggregate: it is one, has no count, is a map */
	bool negative;
	uint8_t word_length;
	uint8_t rest_length;
	char word[RESP_WORD]; /* first word of a top-level error: ERR, WRONGTYPE, ... */
	char rest[RESP_REST]; /* what follows, as far as there is room */
};

/* A scanner at the beginning of a reply is all zeros; it is so again after every complete one, but for
 * kind and word, which stay valid until the next call. */

/* Scans on from *at. 1: a reply is complete, *at is behind it. 2: a push is, which answers nothing.
 * 0: the bytes ran out (*at == end). -1: this is no reply; *at is at the offending byte. */
int resp_scan(struct resp_scanner *s, const char **at, const char *end);

#ifdef __cplusplus
}
#endif
#endif

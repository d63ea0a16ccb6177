/* SPDX-License-Identifier: MIT */
/* A scanner of Redis replies (RESP2 and RESP3) for the hot path: finds the end and kind of each reply in the
 * read buffer, without allocation and without storing its bytes. It accepts both protocols at once: RESP3's
 * types differ from RESP2's, so the result of HELLO is not needed. A value that has different types in RESP2
 * and RESP3 has one kind here. A push, which RESP3 may insert between any two replies, has a separate result;
 * attributes, which may precede any element, are skipped. A reply may be split anywhere: the scanner needs a
 * few bytes of state per connection, so no reply has to be gathered first, however large it is.
 * docs/results/speed.md shows why hiredis' reader is not used here; set-up commands use it. */
#ifndef FORKTAIL_LOADGEN_RESP_H
#define FORKTAIL_LOADGEN_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	RESP_DEPTH = 7, /* maximum nesting of arrays, maps, sets and attributes, as in hiredis */
	RESP_WORD = 16, /* kept length of an error's first word, with terminating 0 */
	RESP_REST = 80, /* and of the text after it: "3999 127.0.0.1:6381" after MOVED */
};

/* Kinds of replies are the type bytes on the wire. Types without a name here are kinds, too (a boolean, a
 * double). */
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
	uint32_t left[RESP_DEPTH]; /* outstanding elements, per open aggregate */
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
	char rest[RESP_REST]; /* the text after it, as far as it fits */
};

/* A scanner at the beginning of a reply is all zeros, and again after every complete reply, except for kind
 * and word, which stay valid until the next call. */

/* Continues scanning from *at. 1: a reply is complete, *at is after it. 2: a push is, which answers nothing.
 * 0: no more bytes (*at == end). -1: not a reply; *at is at the offending byte. */
int resp_scan(struct resp_scanner *s, const char **at, const char *end);

#ifdef __cplusplus
}
#endif
#endif

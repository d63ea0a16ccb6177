/* SPDX-License-Identifier: MIT */
/* What lines of memcached's text and meta replies have in common: a first word in upper case, then optional
 * text, of which the beginning is kept for errors. For the two scanners, which process bytes as they
 * arrive. */
#ifndef FORKTAIL_LOADGEN_MEMCACHED_LINE_H
#define FORKTAIL_LOADGEN_MEMCACHED_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	MEMCACHED_VALUE_BYTES = 1 << 30, /* maximum size of a value: memcached's own limit, -I 1g */
	MEMCACHED_LINE = 2048,		 /* maximum size of a line without its CRLF */
	MEMCACHED_WORD = 16,		 /* the longest word is CLIENT_ERROR; with terminating 0 */
	MEMCACHED_EXPLANATION = 80,	 /* kept length of an error's text, with terminating 0 */
};

struct memcached_line {
	uint16_t bytes; /* so far */
	uint8_t word_length, explanation_length;
	char word[MEMCACHED_WORD];
	char explanation[MEMCACHED_EXPLANATION]; /* of an error: the beginning of the text after its word */
};

void memcached_line_begin(struct memcached_line *l);
/* A byte of the first word, not a blank or CR. False: not valid in a word. */
bool memcached_line_word(struct memcached_line *l, char byte);
/* Skips text up to the line's CR, and keeps its beginning if wanted. *at is at the CR, the end, or the byte
 * that makes the line too long: false. */
bool memcached_line_text(struct memcached_line *l, const char **at, const char *end, bool keep);
/* An error's line: its word and the beginning of its text. */
void memcached_line_error(const struct memcached_line *l, char *out, size_t size);
/* Whether an error's line says that the server had no memory left for an item. */
bool memcached_line_out_of_memory(const struct memcached_line *l);

#ifdef __cplusplus
}
#endif
#endif

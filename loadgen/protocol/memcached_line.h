/* SPDX-License-Identifier: MIT */
/* What lines of memcached's text and meta replies have in common: a first word in capitals, then perhaps
 * text, of which an error's beginning is kept. For their two scanners, which take bytes as they come. */
#ifndef FORKTAIL_LOADGEN_MEMCACHED_LINE_H
#define FORKTAIL_LOADGEN_MEMCACHED_LINE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	MEMCACHED_VALUE_BYTES = 1 << 30, /* a value's bytes at most: memcached's own limit, -I 1g */
	MEMCACHED_LINE = 2048,		 /* a line's bytes at most, without its CRLF */
	MEMCACHED_WORD = 16,		 /* the longest word is CLIENT_ERROR; with a closing 0 */
	MEMCACHED_EXPLANATION = 32,	 /* an error's text is kept up to here, with its closing 0 */
};

struct memcached_line {
	uint16_t bytes; /* so far */
	uint8_t word_length, explanation_length;
	char word[MEMCACHED_WORD];
	char explanation[MEMCACHED_EXPLANATION]; /* of an error: how the text behind its word begins */
};

void memcached_line_begin(struct memcached_line *l);
/* A byte of the first word, no blank or CR. False: that's in none. */
bool memcached_line_word(struct memcached_line *l, char byte);
/* Skips text up to the line's CR, keeping how it begins if that's wanted. *at is at the CR, the end, or the
 * byte that makes the line too long: false. */
bool memcached_line_text(struct memcached_line *l, const char **at, const char *end, bool keep);
/* Whether an error's line says that the server had no memory left for an item. */
bool memcached_line_out_of_memory(const struct memcached_line *l);

#ifdef __cplusplus
}
#endif
#endif

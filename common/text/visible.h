/* SPDX-License-Identifier: MIT */
/* Text of others (names that a traced process gives itself, files, a server's words) as text that any
 * terminal, page or log shows as it is and nobody is fooled by: UTF-8, without anything that moves the
 * cursor, sets a title or a clipboard, begins a line or turns the direction of writing.
 *
 * Each program does it once, where it takes the text in: the analysis when it reads a recording, the recorder
 * and the load generator before they print. */
#ifndef FORKTAIL_COMMON_TEXT_VISIBLE_H
#define FORKTAIL_COMMON_TEXT_VISIBLE_H

#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { VISIBLE_MOST = 4 }; /* bytes that one of the text's can take */

/* Writes `length` bytes of text so that they can be seen: control characters (C0, DEL, C1) and bytes that are
 * no UTF-8 as \x1b, what is invisible and orders other text as \u202e. What is visible stays as it is, a
 * backslash too: text that went through once comes out of a second time unchanged. Ends with a 0, before the
 * first character that has no room in `size` bytes. Returns the bytes of the whole, without the 0: the same
 * as `length` if there was nothing to do. */
size_t visible_text(char *out, size_t size, const char *text, size_t length);
/* The same to a file. */
void put_visible(FILE *to, const char *text);

#ifdef __cplusplus
}
#endif
#endif

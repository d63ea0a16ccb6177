/* SPDX-License-Identifier: MIT */
/* Sanitizes untrusted text (names that a traced process gives itself, file names, a server's text), so that
 * any terminal, page or log prints it unchanged and it misleads no reader: UTF-8, without anything that moves
 * the cursor, sets a title or a clipboard, starts a line or changes the direction of writing. Each program
 * does it once, where it receives the text: the analysis when it reads a recording, the recorder and the load
 * generator before they print. */
#ifndef FORKTAIL_COMMON_TEXT_VISIBLE_H
#define FORKTAIL_COMMON_TEXT_VISIBLE_H

#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { VISIBLE_MOST = 4 }; /* maximum output bytes per input byte */

/* Writes `length` bytes of text in printable form: control characters (C0, DEL, C1) and invalid UTF-8 bytes
 * as \x1b, invisible characters that affect other text as \u202e. Printable text stays unchanged, including a
 * backslash, so sanitizing twice has no further effect. Ends with a 0, before the first character that does
 * not fit in `size` bytes. Returns the size of the complete result, without the 0: equal to `length` if
 * nothing was changed. */
size_t visible_text(char *out, size_t size, const char *text, size_t length);
/* The same to a file. */
void put_visible(FILE *to, const char *text);

#ifdef __cplusplus
}
#endif
#endif

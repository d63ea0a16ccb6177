/* SPDX-License-Identifier: MIT */
/* What people type and where they read: short numbers, misspelled names, the terminal. */
#ifndef FORKTAIL_COMMON_INPUT_H
#define FORKTAIL_COMMON_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As parse_count (text.h), for numbers that users write short: also "10k", "1.5M", "1e6" (k, M, G, T: 10^3 to
 * 10^12), if the result is a whole number. */
bool parse_amount(const char *text, uint64_t low, uint64_t high, uint64_t *out);
/* As parse_positive, also "10k". */
bool parse_rate(const char *text, double high, double *out);

/* The name that a misspelled text probably means: the one with the fewest wrong letters, at most 1 to 3 of
 * them by the length of the text. NULL: none is so close. */
const char *closest_name(const char *text, const char *const *names, size_t count);

/* The width of the terminal at `fd`, else $COLUMNS, else `usual`; from 40 to 500. */
size_t terminal_columns(int fd, size_t usual);
/* Whether standard error is a terminal on which a line can be written again: not with TERM=dumb. */
bool can_rewrite_line(void);

#ifdef __cplusplus
}
#endif
#endif

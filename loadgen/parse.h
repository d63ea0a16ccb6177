/* SPDX-License-Identifier: MIT */
/* Numbers, times and ratios as users write them. Each function takes the whole text or refuses it. */
#ifndef FORKTAIL_LOADGEN_PARSE_H
#define FORKTAIL_LOADGEN_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Decimal digits only, within low .. high. */
bool parse_count(const char *text, uint64_t low, uint64_t high, uint64_t *out);
/* A decimal number above 0 and at most `high`. */
bool parse_positive(const char *text, double high, double *out);
/* "10" and "10s" are seconds; "500ms", "2.5s", "3m", "1h". Above 0 unless zero is allowed, below 10^9 s. */
bool parse_duration(const char *text, bool zero, uint64_t *ns);
/* "1:4": two counts of at most a million, not both 0. */
bool parse_ratio(const char *text, uint32_t *first, uint32_t *second);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* Numbers, times and ratios as users write them, for every program, in C and C++: so that "1h" is an hour to
 * all of them. Each function takes the whole text or refuses it, unless it says otherwise. */
#ifndef FORKTAIL_COMMON_TEXT_PARSE_H
#define FORKTAIL_COMMON_TEXT_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Decimal digits only, within low .. high. */
bool parse_count(const char *text, uint64_t low, uint64_t high, uint64_t *out);
/* A decimal number above 0 and at most `high`. */
bool parse_positive(const char *text, double high, double *out);
/* The decimal number from 0 up that the text begins with; *text is what follows it then. */
bool parse_number(const char **text, double *out);
/* "1:4": two counts of at most a million, not both 0. */
bool parse_ratio(const char *text, uint32_t *first, uint32_t *second);

/* Units of time, which add up to what somebody takes. */
enum {
	TIME_NS = 1,
	TIME_US = 2,
	TIME_MS = 4,
	TIME_S = 8,
	TIME_M = 16,
	TIME_H = 32,
	TIME_D = 64,
	TIME_ANY = TIME_NS | TIME_US | TIME_MS | TIME_S | TIME_M | TIME_H, /* but days, which few need */
};

struct time_unit {
	const char *name; /* "ms" */
	unsigned unit;	  /* TIME_MS */
	double ns;
};

/* The first of `units` that is called so, or at all with NULL for a name. NULL: none is. */
const struct time_unit *find_time_unit(const char *name, unsigned units);

/* A number from 0 up and one of `units` behind it: "500ms", "2.5s". A bare number is in `bare`, one of the
 * units; 0: there has to be a unit. At most 10^9 s; to the nearest nanosecond. */
bool parse_duration(const char *text, unsigned units, unsigned bare, uint64_t *ns);

/* "64MB", "1.5GB", "4KiB", bytes without a unit: kB, MB, GB and TB of 1000, KiB to TiB of 1024, B for bytes.
 * At most 10^18 bytes; what is left of one is cut. */
bool parse_bytes(const char *text, uint64_t *bytes);

#ifdef __cplusplus
}
#endif
#endif

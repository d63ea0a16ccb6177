/* SPDX-License-Identifier: MIT */
/* Numbers, times and ratios in user input, for every program, in C and C++: so that "1h" means an hour
 * everywhere. Each function accepts the whole text or refuses it, unless its comment says otherwise. */
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
/* The decimal number of at least 0 that the text begins with; *text is what follows it. */
bool parse_number(const char **text, double *out);
/* "1:4": two counts of at most a million, not both 0. */
bool parse_ratio(const char *text, uint32_t *first, uint32_t *second);
/* "1/16": one in that many, a power of two from 1 to 1,024, which is the largest sample of connections. */
bool parse_sample(const char *text, uint32_t *one_in);
#define SAMPLE_WANTED "auto, or 1/N with a power of two up to 1024, such as 1/16"

/* Units of time; callers combine those they accept. */
enum {
	TIME_NS = 1,
	TIME_US = 2,
	TIME_MS = 4,
	TIME_S = 8,
	TIME_M = 16,
	TIME_H = 32,
	TIME_D = 64,
	TIME_ANY = TIME_NS | TIME_US | TIME_MS | TIME_S | TIME_M |
		   TIME_H, /* all but days, which few options accept */
};

struct time_unit {
	const char *name; /* "ms" */
	unsigned unit;	  /* TIME_MS */
	double ns;
};

/* The first of `units` with this name, or the first of all if the name is NULL. NULL: none. */
const struct time_unit *find_time_unit(const char *name, unsigned units);

/* A number of at least 0 followed by one of `units`: "500ms", "2.5s". A bare number is in `bare`, one of the
 * units; 0: a unit is required. At most 10^9 s, rounded to the nearest nanosecond. */
bool parse_duration(const char *text, unsigned units, unsigned bare, uint64_t *ns);

/* "64MB", "1.5GB", "4KiB", bytes without a unit: kB, MB, GB and TB of 1000, KiB to TiB of 1024, B for bytes.
 * At most 10^18 bytes; fractions of a byte are dropped. */
bool parse_bytes(const char *text, uint64_t *bytes);

#ifdef __cplusplus
}
#endif
#endif

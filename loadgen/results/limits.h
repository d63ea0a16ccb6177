/* SPDX-License-Identifier: MIT */
/* Limits that a run is to keep, for a run that is a test in a pipeline: --fail-if 'p99>2ms'. A limit says
 * when the run has failed. Looking up the figure it names is the caller's business.
 *
 *   [OPERATION.]FIGURE OP VALUE       OP: >  >=  <  <=
 *
 *   FIGURE                            VALUE
 *   p50, p99.99, avg, min, max,       a time: us, ms or s; ms without a unit
 *   stddev
 *   errors                            a count, or a share of the requests: 1%
 *   misses, requests                  a count
 *   rps, mb/s                         a number
 *
 * Spaces around OP and before a unit are fine, figures and units may be in capitals.
 */
#ifndef FORKTAIL_LOADGEN_LIMITS_H
#define FORKTAIL_LOADGEN_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum limit_figure {
	LIMIT_PERCENTILE,
	LIMIT_AVERAGE,
	LIMIT_MINIMUM,
	LIMIT_MAXIMUM,
	LIMIT_STDDEV,
	LIMIT_ERRORS,
	LIMIT_ERROR_PERCENT, /* "errors>1%" */
	LIMIT_MISSES,
	LIMIT_RPS,
	LIMIT_REQUESTS,
	LIMIT_MB_PER_S,
};

enum limit_comparison { LIMIT_OVER, LIMIT_OVER_OR_AT, LIMIT_UNDER, LIMIT_UNDER_OR_AT };

struct limit {
	char operation[64];   /* as written; "": all operations together */
	char figure_name[24]; /* as written, lower case: "p99.99" */
	enum limit_figure figure;
	double percentile; /* 0 < p <= 100; of LIMIT_PERCENTILE */
	enum limit_comparison comparison;
	double value;	  /* a time in nanoseconds; a share in percent */
	const char *unit; /* "ms", "%", ""; what the value was written in and is told in */
	double scale;	  /* what one of that unit is: 1e6 for "ms" */
};

/* False and one sentence in `error` for what is none. */
bool limit_parse(const char *text, struct limit *limit, char *error, size_t size);

/* Has the run failed? `value` is the figure in the unit of limit.value: nanoseconds, percent, or plain. A
 * figure that there is none of (NAN: nothing was measured) has failed: such a run keeps no promise. */
bool limit_broken(const struct limit *limit, double value);

/* "GET p99 is 2.31 ms, over the limit of 2 ms"; "p99 is 1.2 ms, within its limit (over 2 ms fails)". With as
 * many digits as it takes to tell the two apart. */
void limit_sentence(const struct limit *limit, double value, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif

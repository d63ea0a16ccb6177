/* SPDX-License-Identifier: MIT */
/* Limits for a run that is a test in a pipeline. One grammar for all programs, with two meanings: --fail-if
 * 'p99>2ms' of the load generator and explain says when a run has failed; 'p99 < 2ms' of the gate says what
 * has to hold. The caller looks up the figure, and checks whether the operation or cause exists.
 *
 *   [OF.]FIGURE OP VALUE              OP: >  >=  <  <=  =  !=
 *   [OF.]FIGURE no worse than BASE [by more than VALUE]
 *   cause share of CAUSE OP VALUE     the same as CAUSE.share OP VALUE
 *
 *   OF         FIGURE                 VALUE
 *   operation  p50, p99.99, avg,      a time: us, ms or s; ms without a unit
 *   or none    min, max, stddev
 *              errors                 a count, or a share of the requests: 1%
 *              misses, requests       a count
 *              rps, mb/s              a number
 *   cause      max, total             a time
 *              share                  a share in percent, with its sign: 1%
 *              requests, episodes     a count
 *   none       unknown                the same as unknown.share
 *              episodes, drops        a count
 *
 * After "by more than", the value may be a share of the figure in the base: 10%. Spaces around OP and before
 * a unit are allowed; figures and units may be in upper case. */
#ifndef FORKTAIL_LIMITS_H
#define FORKTAIL_LIMITS_H

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
	/* The following figures exist for recordings only, not for a load. */
	LIMIT_TOTAL,
	LIMIT_SHARE,
	LIMIT_EPISODES,
	LIMIT_DROPS,
};

enum limit_comparison {
	LIMIT_OVER,
	LIMIT_OVER_OR_AT,
	LIMIT_UNDER,
	LIMIT_UNDER_OR_AT,
	LIMIT_EQUAL,
	LIMIT_UNEQUAL,
	LIMIT_NO_WORSE, /* than in the base; `value` is the allowed difference */
};

enum limit_reading { LIMIT_FAILS_IF, LIMIT_HAS_TO_HOLD };

struct limit {
	char of[64];	      /* as written, an operation or a cause; "": all requests together */
	char figure_name[24]; /* as written, lower case: "p99.99" */
	enum limit_figure figure;
	bool cause;	   /* `of` can only be a cause */
	double percentile; /* 0 < p <= 100; of LIMIT_PERCENTILE */
	enum limit_comparison comparison;
	double value;	  /* a time in nanoseconds; a share in percent */
	bool base_share;  /* for LIMIT_NO_WORSE: `value` is percent of the figure in the base */
	bool derived;	  /* computed by limit_against, not written by a user */
	const char *unit; /* "ms", "%", ""; the unit of the value in input and output */
	double scale;	  /* that unit in ns: 1e6 for "ms" */
};

/* False, and one sentence in `error`, if the text is not a limit. */
bool limit_parse(const char *text, struct limit *limit, char *error, size_t size);

/* Whether the load generator can evaluate the figure: without a recording and without a base. */
bool limit_is_of_load(const struct limit *limit);

/* Whether the limit can have to hold: not if it demands a high latency, errors, or a low rate. False, and in
 * `error` one sentence that says what to write. For LIMIT_HAS_TO_HOLD only: what fails a run is the
 * opposite. */
bool limit_can_hold(const struct limit *limit, const char *text, char *error, size_t size);

/* Whether more of a figure is worse: true except for those that count work done. */
bool limit_more_is_worse(enum limit_figure figure);

/* Turns a LIMIT_NO_WORSE into a limit by comparison, given the figure `base` in the base, in the unit of a
 * limit.value. Times are printed in a suitable unit. */
struct limit limit_against(const struct limit *limit, double base);

/* Whether the run has failed. `value` is the figure in the unit of limit.value: nanoseconds, percent, or
 * plain. A missing figure (NAN: nothing was measured) fails in both meanings. Not for LIMIT_NO_WORSE, see
 * limit_against. */
bool limit_broken(const struct limit *limit, enum limit_reading reading, double value);

/* "GET p99 is 2.31 ms, over the limit of 2 ms"; "p99 is 1.2 ms, within its limit (over 2 ms fails)"; for the
 * gate "p99 is 2.31 ms, over 2 ms". With as many digits as are needed to distinguish the two numbers. */
void limit_sentence(const struct limit *limit, enum limit_reading reading, double value, char *out,
		    size_t size);

#ifdef __cplusplus
}
#endif
#endif

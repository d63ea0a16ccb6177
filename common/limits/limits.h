/* SPDX-License-Identifier: MIT */
/* Limits that a run is to keep, for a run that is a test in a pipeline. One grammar for all programs, in two
 * readings: what the load generator's and explain's --fail-if 'p99>2ms' say is when a run has failed, what
 * the gate's 'p99 < 2ms' says is what has to hold. Looking up the figure that a limit names is the caller's
 * business, and so is whether there is such an operation or cause.
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
 * Behind "by more than" any figure's value may be a share of what it is in the base: 10%. Spaces around OP
 * and before a unit are fine, figures and units may be in capitals. */
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
	/* What follows is known of recordings only, not of a load. */
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
	LIMIT_NO_WORSE, /* than in the base; `value` is by how much it may be */
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
	bool base_share;  /* of LIMIT_NO_WORSE: `value` is percent of the figure in the base */
	bool derived;	  /* nobody wrote `value`: limit_against */
	const char *unit; /* "ms", "%", ""; what the value was written in and is told in */
	double scale;	  /* what one of that unit is: 1e6 for "ms" */
};

/* False and one sentence in `error` for what is none. */
bool limit_parse(const char *text, struct limit *limit, char *error, size_t size);

/* Whether the load generator can know such a figure, and judge it: without a recording, without a base. */
bool limit_is_of_load(const struct limit *limit);

/* Whether more of a figure is worse, as of all but what counts work done. */
bool limit_more_is_worse(enum limit_figure figure);

/* What a LIMIT_NO_WORSE comes to where the figure is `base` in the base, in the unit of a limit.value: a
 * limit by comparison. Of times it is told in the unit that suits it. */
struct limit limit_against(const struct limit *limit, double base);

/* Has the run failed? `value` is the figure in the unit of limit.value: nanoseconds, percent, or plain. A
 * figure that there is none of (NAN: nothing was measured) has failed in either reading: such a run keeps no
 * promise. Not of LIMIT_NO_WORSE, see limit_against. */
bool limit_broken(const struct limit *limit, enum limit_reading reading, double value);

/* "GET p99 is 2.31 ms, over the limit of 2 ms"; "p99 is 1.2 ms, within its limit (over 2 ms fails)"; of what
 * has to hold "p99 is 2.31 ms, over 2 ms". With as many digits as it takes to tell the two apart. */
void limit_sentence(const struct limit *limit, enum limit_reading reading, double value, char *out,
		    size_t size);

#ifdef __cplusplus
}
#endif
#endif

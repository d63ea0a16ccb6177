/* SPDX-License-Identifier: MIT */
/* The search for the highest rate at which limits hold (--find), apart from the runs that answer it: which
 * rate to run next, given which rates held so far. It widens until one rate holds and a higher one fails,
 * halves the ratio of the two until it is at most SEARCH_RATIO, and repeats both. Runs vary, so one failed
 * run decides nothing: a rate holds or fails by the majority of its runs, and near the edge both have
 * several. */
#ifndef FORKTAIL_LOADGEN_RUN_SEARCH_H
#define FORKTAIL_LOADGEN_RUN_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SEARCH_RATES_MAX = 64, SEARCH_RUNS_MAX = 96 };

/* How far apart the two rates at the end are. If the client is the limit, a coarser answer is enough: the
 * client's limit says little about the server. */
#define SEARCH_RATIO 1.01
#define SEARCH_RATIO_CLIENT 1.1
/* No rate below this share of the first one is tried. */
#define SEARCH_LOWEST (1.0 / 1024)

enum search_verdict {
	SEARCH_HELD,
	SEARCH_FAILED,
	SEARCH_FAILED_FAR, /* so far beyond that repeating it would not help, or requests failed */
};

enum search_end {
	SEARCH_GOES_ON,
	SEARCH_FOUND,
	SEARCH_CLIENT,	  /* at the lowest rate that failed, the client was at its limit */
	SEARCH_NONE_HELD, /* down to the lowest rate tried */
	SEARCH_UNDECIDED, /* after SEARCH_RUNS_MAX runs or SEARCH_RATES_MAX rates the runs still disagree */
};

struct search_rate {
	double rate; /* requests per second */
	uint32_t runs, held;
	bool far;    /* a run was SEARCH_FAILED_FAR */
	bool client; /* in a failed run the client was at its limit */
};

struct search {
	struct search_rate rates[SEARCH_RATES_MAX]; /* in the order in which they were first run */
	uint32_t count, runs, repeat, current;
	enum search_end end;
};

/* Begins with `rate` (> 0); both rates at the edge get at least `repeat` runs (>= 1). */
void search_begin(struct search *s, double rate, uint32_t repeat);

/* The rate to run next, of four digits; 0: the search has ended, see s->end. */
double search_next(struct search *s);

/* The result of a run at the rate that search_next returned. `client`: the client was at its limit. */
void search_tell(struct search *s, enum search_verdict verdict, bool client);

/* The lowest rate that failed; NULL: none. */
const struct search_rate *search_beyond(const struct search *s);
/* The highest rate below it that held; NULL: none. */
const struct search_rate *search_highest(const struct search *s);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* Which key a request uses: a pattern of key numbers over a key space 0 .. items-1. No pattern needs a table:
 * a key space of 10^12 costs as much as one of 10, and one that grows during the load costs one or two
 * additional logarithms per draw. The YCSB generators are separate (ycsb.h): they match YCSB exactly,
 * including its quirks, while these follow the distribution they are named after. */
#ifndef FORKTAIL_LOADGEN_KEYS_H
#define FORKTAIL_LOADGEN_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/command/random.h"

#ifdef __cplusplus
extern "C" {
#endif

enum key_pattern {
	KEYS_UNIFORM,
	KEYS_SEQUENTIAL, /* in order, from 0 again after the last */
	KEYS_ZIPF,	 /* key k in proportion to 1 / (k+1)^exponent */
	KEYS_GAUSSIAN,	 /* around the middle of the key space; numbers outside are drawn again */
	KEYS_LATEST,	 /* zipf from the other end: the last key is the most popular */
	KEYS_HOT,	 /* the first keys get most of the requests; uniform within each part */
};

struct key_distribution {
	enum key_pattern pattern;
	double exponent;	       /* zipf, latest: above 0 */
	double deviation;	       /* gaussian: standard deviation / items, above 0, at most 1 */
	double hot_requests, hot_keys; /* hot: shares, above 0, at most 1; at least one key is hot */
	bool scattered; /* zipf: popular keys are scattered over the key space in a fixed order, not at its
			   start */
};

/* "uniform", "sequential", "zipf", "zipf:1.2", "zipf-scattered", "zipf-scattered:1.2", "gaussian",
 * "gaussian:0.1", "latest", "latest:0.8", "hot:90:10" (90 % of requests to 10 % of keys). Exponents are 0.99
 * and the deviation 1/6 by default. Returns false with one sentence in `error`. */
bool key_distribution_parse(const char *text, struct key_distribution *d, char *error, size_t size);

/* One thread's source of keys: the distribution, and values that depend on the number of items, cached while
 * that is unchanged. */
struct key_drawer {
	struct key_distribution distribution;
	uint64_t next;	/* sequential: the next key; 0 at first, the caller may change it */
	uint64_t items; /* the cached values belong to this number; 0: none yet */
	double low, high, squeeze;
	double spare; /* gaussian: they come in pairs */
	bool has_spare;
};

void key_drawer_init(struct key_drawer *d, const struct key_distribution *distribution);

/* A key number in 0 .. items-1. `items` is 1 to 2^53 and may change from call to call. */
uint64_t key_draw(struct key_drawer *d, struct random_stream *r, uint64_t items);

/* The key of a rank in scattered zipf: a permutation of 0 .. items-1, the same in every run. */
uint64_t key_scatter(uint64_t rank, uint64_t items);

#ifdef __cplusplus
}
#endif
#endif

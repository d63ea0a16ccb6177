/* SPDX-License-Identifier: MIT */
/* Which key a request goes to: a pattern of key numbers over a key space 0 .. items-1.
 *
 * No pattern needs a table: a key space of 10^12 costs what one of 10 does, and one that grows while the
 * load runs costs a logarithm or two more per draw. The YCSB generators are elsewhere (ycsb.h): they are kept
 * as YCSB has them, quirks included, while these follow the distribution they are named after.
 */
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
	KEYS_SEQUENTIAL, /* each in turn, from 0 again after the last */
	KEYS_ZIPF,	 /* key k in proportion to 1 / (k+1)^exponent */
	KEYS_GAUSSIAN,	 /* around the middle of the key space; what falls outside is drawn again */
	KEYS_LATEST,	 /* zipf from the other end: the last key is the most popular */
	KEYS_HOT,	 /* the first keys get most of the requests; uniform within each part */
};

struct key_distribution {
	enum key_pattern pattern;
	double exponent;	       /* zipf, latest: above 0 */
	double deviation;	       /* gaussian: standard deviation / items, above 0, at most 1 */
	double hot_requests, hot_keys; /* hot: shares, above 0, at most 1; at least one key is hot */
	bool
	    scattered; /* zipf: popular keys lie all over the key space, in a fixed order, not at its start */
};

/* "uniform", "sequential", "zipf", "zipf:1.2", "zipf-scattered", "zipf-scattered:1.2", "gaussian",
 * "gaussian:0.1", "latest", "latest:0.8", "hot:90:10" (90 % of requests to 10 % of keys). Exponents are 0.99
 * and the deviation 1/6 unless given. Returns false with one sentence in `error`. */
bool key_distribution_parse(const char *text, struct key_distribution *d, char *error, size_t size);

/* One thread's source of keys: the distribution, and what depends on the number of items, kept while that
 * stays the same. */
struct key_drawer {
	struct key_distribution distribution;
	uint64_t next;	/* sequential: the next key; 0 at first, the caller may set another */
	uint64_t items; /* the following are for; 0: none yet */
	double low, high, squeeze;
	double spare; /* gaussian: they come in pairs */
	bool has_spare;
};

void key_drawer_init(struct key_drawer *d, const struct key_distribution *distribution);

/* A key number in 0 .. items-1. `items` is 1 to 2^53 and may change from call to call. */
uint64_t key_draw(struct key_drawer *d, struct random_stream *r, uint64_t items);

/* Where scattered zipf puts a rank: a permutation of 0 .. items-1, the same in every run. */
uint64_t key_scatter(uint64_t rank, uint64_t items);

#ifdef __cplusplus
}
#endif
#endif

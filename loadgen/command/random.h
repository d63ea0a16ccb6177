/* SPDX-License-Identifier: MIT */
/* Random numbers that repeat by seed. Key order, choice of operation and arrivals each draw from a separate
 * stream, so that changing one setting does not change the other sequences. The generator is SplitMix64
 * (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014): eight bytes of state,
 * about a nanosecond per draw, and good enough for choosing keys. */
#ifndef FORKTAIL_LOADGEN_RANDOM_H
#define FORKTAIL_LOADGEN_RANDOM_H

#include <stdint.h>

struct random_stream {
	uint64_t state;
};

/* The next 64 random bits. */
static inline uint64_t random_next(struct random_stream *r)
{
	uint64_t z = (r->state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Uniform in 0 .. limit-1; the bias is limit / 2^64. */
static inline uint64_t random_below(struct random_stream *r, uint64_t limit)
{
	return (uint64_t)(((unsigned __int128)random_next(r) * limit) >> 64);
}

/* Uniform in (0, 1]: never 0, so that its logarithm is finite. */
static inline double random_unit(struct random_stream *r)
{
	return (double)((random_next(r) >> 11) + 1) * 0x1p-53;
}

/* Stream `which` of thread `thread` for a seed: streams share no visible structure. */
static inline struct random_stream random_begin(uint64_t seed, uint32_t thread, uint32_t which)
{
	struct random_stream r = {seed};

	r.state = random_next(&r) ^ ((uint64_t)thread << 32 | which);
	r.state = random_next(&r);
	return r;
}

#endif

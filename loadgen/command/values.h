/* SPDX-License-Identifier: MIT */
/* Values: their sizes and bytes. A value's bytes follow from a 64-bit seed: its 16 hexadecimal digits, then
 * text from a pool, starting at an offset derived from the seed. So a value that belongs to a key (seeded by
 * the key's number) can be checked byte by byte when it is read, without storing it, even in another run. */
#ifndef FORKTAIL_LOADGEN_VALUES_H
#define FORKTAIL_LOADGEN_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "random.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { VALUE_SIZES_MAX = 32, VALUE_POOL_BYTES = 1 << 20, VALUE_STAMP_BYTES = 16 };
#define VALUE_BYTES_MAX (64u << 20)

enum size_kind { SIZE_FIXED, SIZE_RANGE, SIZE_LIST, SIZE_LOGNORMAL };

struct value_sizes {
	enum size_kind kind;
	uint32_t low, high; /* bytes, for every kind: limits of all values */
	uint32_t count;	    /* SIZE_LIST */
	uint32_t list[VALUE_SIZES_MAX];
	uint64_t below[VALUE_SIZES_MAX]; /* a 64-bit draw up to this selects list[i] */
	double median, sigma;		 /* SIZE_LOGNORMAL: parameter of the logarithm */
};

struct values {
	struct value_sizes sizes;
	char *pool; /* VALUE_POOL_BYTES, twice: no wrap-around within a copy */
};

/* "100", "10-1000" (uniform), "100:80,10000:20" (sizes with weights), "lognormal:200,1.2" (median in bytes
 * and sigma of the logarithm; at most 1 MiB, or 65536 with "lognormal:200,1.2,65536"). Sizes are 1 ..
 * VALUE_BYTES_MAX. False, and a sentence in `error`. */
bool value_sizes_parse(const char *text, struct value_sizes *s, char *error, size_t size);
/* The text in the table's headline: "100-byte values". */
void value_sizes_describe(const struct value_sizes *s, char *out, size_t size);

/* Printable bytes. The share `compressible` (0..1) of each 64 bytes is one repeated letter. */
void values_text(char *to, uint32_t bytes, double compressible, struct random_stream *random);
/* The caller sets v->sizes. `compressible`: share 0..1 of the bytes that are one letter. Returns -ENOMEM on
 * failure. */
int values_prepare(struct values *v, double compressible, uint64_t seed);
void values_free(struct values *v);

/* The seed of the value that belongs to a key. */
static inline uint64_t value_seed_of_key(uint64_t key)
{
	struct random_stream r = {key};

	return random_next(&r);
}

/* The size that a seed determines. */
uint32_t value_size(const struct values *v, uint64_t seed);
/* Writes bytes from .. from+count-1 of the value of `seed`. */
void value_copy(const struct values *v, uint64_t seed, uint32_t from, char *to, uint32_t count);
/* The offset in the value of the first of `count` bytes that is wrong, or -1. */
int64_t value_check(const struct values *v, uint64_t seed, uint32_t from, const char *bytes, uint32_t count);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* Values: how large they are and which bytes they hold.
 *
 * A value's bytes follow from a 64-bit seed: its 16 hexadecimal digits, then text from a pool that the seed
 * says where to begin in. So a value that belongs to a key (seeded by the key's number) can be checked byte
 * by byte when it is read, without having been kept, and in another run too.
 */
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
	uint32_t low, high; /* bytes, every kind: no value is outside */
	uint32_t count;	    /* SIZE_LIST */
	uint32_t list[VALUE_SIZES_MAX];
	uint64_t below[VALUE_SIZES_MAX]; /* a draw of 64 bits up to this is list[i] */
	double median, sigma;		 /* SIZE_LOGNORMAL: of the logarithm */
};

struct values {
	struct value_sizes sizes;
	char *pool; /* VALUE_POOL_BYTES, twice: no wrap within a copy */
};

/* "100", "10-1000" (uniform), "100:80,10000:20" (sizes with weights), "lognormal:200,1.2" (median in bytes
 * and sigma of the logarithm; cut at "lognormal:200,1.2,65536", else at 1 MiB). Sizes are 1 ..
 * VALUE_BYTES_MAX. False, and a sentence in `error`. */
bool value_sizes_parse(const char *text, struct value_sizes *s, char *error, size_t size);
/* What the table's headline says: "100-byte values". */
void value_sizes_describe(const struct value_sizes *s, char *out, size_t size);

/* Printable bytes, of which in each 64 the share `compressible` (0..1) is one letter. */
void values_text(char *to, uint32_t bytes, double compressible, struct random_stream *random);
/* v->sizes is set by the caller. `compressible`: share 0..1 of the bytes that are one letter. -ENOMEM. */
int values_prepare(struct values *v, double compressible, uint64_t seed);
void values_free(struct values *v);

/* The seed of the value that belongs to a key. */
static inline uint64_t value_seed_of_key(uint64_t key)
{
	struct random_stream r = {key};

	return random_next(&r);
}

/* The size that a seed stands for. */
uint32_t value_size(const struct values *v, uint64_t seed);
/* Writes bytes from .. from+count-1 of the value of `seed`. */
void value_copy(const struct values *v, uint64_t seed, uint32_t from, char *to, uint32_t count);
/* The offset in the value of the first of `count` bytes that is not what it has to be, or -1. */
int64_t value_check(const struct values *v, uint64_t seed, uint32_t from, const char *bytes, uint32_t count);

#ifdef __cplusplus
}
#endif
#endif

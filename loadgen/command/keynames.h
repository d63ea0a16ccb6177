/* SPDX-License-Identifier: MIT */
/* Turns a key's number into its name: a prefix and the number with leading zeros, to a length that is fixed
 * or (a range) derived from the number; or YCSB's names. Names are unique. */
#ifndef FORKTAIL_LOADGEN_KEYNAMES_H
#define FORKTAIL_LOADGEN_KEYNAMES_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "key:" and this many digits, as redis-benchmark names keys. */
enum { KEY_DIGITS = 12, KEY_NAME_MAX = 64 << 10 };
#define KEY_SPACE_MAX 1000000000000u

struct key_names {
	char *prefix; /* a pointer, because it may be as long as a name */
	uint32_t prefix_length;
	uint32_t low, high; /* length of a name in bytes; equal: fixed */
	bool ycsb;	    /* "user" and a hash; the fields above are not used */
};

/* `length`: NULL for prefix and 12 digits, "N" or "LOW-HIGH" bytes. `keys`: numbers below it must fit into a
 * fixed length (a range grows to what a number needs). Returns 0, -ENOMEM, or -EINVAL and a sentence. */
int key_names_prepare(struct key_names *k, const char *prefix, const char *length, uint64_t keys, char *error,
		      size_t size);
void key_names_free(struct key_names *k);

static inline bool key_names_fixed(const struct key_names *k)
{
	return !k->ycsb && k->low == k->high;
}

/* The name's length, and the name (without terminating 0). */
uint32_t key_name_length(const struct key_names *k, uint64_t key);
void key_name_write(const struct key_names *k, uint64_t key, char *to, uint32_t length);

/* Eight decimal digits of a number below 10^8 as the bytes of a little-endian word: divided by 10^4, then all
 * halves by 100 and all quarters by 10 at once, by multiplying with reciprocals that are exact in these
 * ranges. */
static inline uint64_t digits_eight(uint32_t value)
{
	uint64_t word = value / 10000 | (uint64_t)(value % 10000) << 32, tops;

	tops = (word * 10486 >> 20) & 0x0000007f0000007f;
	word = tops | (word - 100 * tops) << 16;
	tops = (word * 103 >> 10) & 0x000f000f000f000f;
	word = tops | (word - 10 * tops) << 8;
	return word + 0x3030303030303030;
}

/* The digits of a number in KEY_DIGITS bytes, with leading zeros. */
static inline void digits_write_key(char *to, uint64_t value)
{
	uint64_t high = 0x3030303030303030, low;

	if (__builtin_expect(value >= 100000000, 0)) {
		high = digits_eight((uint32_t)(value / 100000000 % 10000));
		value %= 100000000;
	}
	low = htole64(digits_eight((uint32_t)value));
	high = htole64(high >> 32);
	memcpy(to, &high, 4);
	memcpy(to + 4, &low, 8);
}

/* Decimal digits of `value`, right-aligned in `width` bytes, with leading zeros. */
void digits_write(char *to, uint32_t width, uint64_t value);
uint32_t digits_count(uint64_t value);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* How a key's number becomes its name: a prefix and the number with zeros in front of it, to a length that is
 * fixed or (a range) follows from the number; or YCSB's names. Two numbers never share a name. */
#ifndef FORKTAIL_LOADGEN_KEYNAMES_H
#define FORKTAIL_LOADGEN_KEYNAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "key:" and this many digits, as redis-benchmark names keys. */
enum { KEY_DIGITS = 12, KEY_NAME_MAX = 64 << 10 };
#define KEY_SPACE_MAX 1000000000000u

struct key_names {
	char *prefix; /* a pointer, since it may be as long as a name */
	uint32_t prefix_length;
	uint32_t low, high; /* length of a name in bytes; equal: fixed */
	bool ycsb;	    /* "user" and a hash; nothing above counts */
};

/* `length`: NULL for prefix and 12 digits, "N" or "LOW-HIGH" bytes. `keys`: numbers below it must fit into a
 * fixed length (a range grows to what a number needs). 0, -ENOMEM, or -EINVAL and a sentence. */
int key_names_prepare(struct key_names *k, const char *prefix, const char *length, uint64_t keys, char *error,
		      size_t size);
void key_names_free(struct key_names *k);

static inline bool key_names_fixed(const struct key_names *k)
{
	return !k->ycsb && k->low == k->high;
}

/* The name's length, and the name (no closing 0). */
uint32_t key_name_length(const struct key_names *k, uint64_t key);
void key_name_write(const struct key_names *k, uint64_t key, char *to, uint32_t length);

/* Decimal digits of `value`, right-aligned in `width` bytes, zeros in front. */
void digits_write(char *to, uint32_t width, uint64_t value);
uint32_t digits_count(uint64_t value);

#ifdef __cplusplus
}
#endif
#endif

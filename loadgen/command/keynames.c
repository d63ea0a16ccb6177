/* SPDX-License-Identifier: MIT */
/* Digits are written in blocks of twelve where possible, because every request contains a key's name. */
#include "keynames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/parse.h"
#include "random.h"
#include "ycsb_names.h"

uint32_t digits_count(uint64_t value)
{
	uint32_t n = 1;

	while (value >= 10) {
		value /= 10;
		n++;
	}
	return n;
}

void digits_write(char *to, uint32_t width, uint64_t value)
{
	for (char *p = to + width; p > to; value /= 10)
		*--p = (char)('0' + value % 10);
}

static bool parse_length(const char *text, struct key_names *k)
{
	char *copy = strdup(text), *dash = copy ? strchr(copy, '-') : NULL;
	uint64_t low = 0, high = 0;
	bool good;

	if (!copy)
		return false;
	if (dash)
		*dash++ = 0;
	good = parse_count(copy, 1, KEY_NAME_MAX, &low) &&
	       parse_count(dash ? dash : copy, low, KEY_NAME_MAX, &high);
	free(copy);
	k->low = (uint32_t)low;
	k->high = (uint32_t)high;
	return good;
}

int key_names_prepare(struct key_names *k, const char *prefix, const char *length, uint64_t keys, char *error,
		      size_t size)
{
	uint32_t needs = digits_count(keys > 1 ? keys - 1 : 0);

	if (strlen(prefix) > KEY_NAME_MAX - KEY_DIGITS) {
		snprintf(error, size, "--key-prefix is longer than the longest key name (%u bytes)",
			 KEY_NAME_MAX);
		return -EINVAL;
	}
	k->prefix = strdup(prefix);
	if (!k->prefix) {
		snprintf(error, size, "not enough memory");
		return -ENOMEM;
	}
	k->prefix_length = (uint32_t)strlen(prefix);
	k->low = k->high = k->prefix_length + KEY_DIGITS;
	if (length && !parse_length(length, k)) {
		snprintf(error, size, "--key-length: expected BYTES or LOW-HIGH, each 1 to %u, got \"%s\"",
			 KEY_NAME_MAX, length);
		return -EINVAL;
	}
	if (k->low == k->high && k->low < k->prefix_length + needs) {
		snprintf(error, size,
			 "--key-length: %u bytes are too short for the prefix and the %u digits of %llu keys",
			 k->low, needs, (unsigned long long)keys);
		return -EINVAL;
	}
	return 0;
}

void key_names_free(struct key_names *k)
{
	free(k->prefix);
	k->prefix = NULL;
}

uint32_t key_name_length(const struct key_names *k, uint64_t key)
{
	struct random_stream r = {key ^ 0x6b657973};
	uint32_t length, needs;

	if (k->ycsb) {
		char name[YCSB_NAME_BYTES];
		return (uint32_t)ycsb_key_name(key, name);
	}
	if (k->low == k->high)
		return k->low;
	length = k->low + (uint32_t)random_below(&r, k->high - k->low + 1);
	needs = k->prefix_length + digits_count(key);
	return length > needs ? length : needs;
}

void key_name_write(const struct key_names *k, uint64_t key, char *to, uint32_t length)
{
	if (k->ycsb) {
		char name[YCSB_NAME_BYTES];
		memcpy(to, name, (size_t)ycsb_key_name(key, name));
		return;
	}
	memcpy(to, k->prefix, k->prefix_length);
	if (length - k->prefix_length == KEY_DIGITS) {
		digits_write_key(to + k->prefix_length, key);
		return;
	}
	memset(to + k->prefix_length, '0', length - k->prefix_length);
	digits_write(to + length - digits_count(key), digits_count(key), key);
}

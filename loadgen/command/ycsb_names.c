/* SPDX-License-Identifier: MIT */
/* YCSB's hash functions as in its Java code, so that both use the same keys. */
#include "ycsb_names.h"

#include <string.h>

uint64_t ycsb_hash(uint64_t n)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (int i = 0; i < 8; i++, n >>= 8)
		hash = (hash ^ (n & 0xff)) * 0x100000001b3u;
	return (int64_t)hash < 0 ? -hash : hash;
}

size_t ycsb_key_name(uint64_t n, char name[YCSB_NAME_BYTES])
{
	char digits[20];
	size_t at = sizeof(digits);
	uint64_t hash = ycsb_hash(n);

	for (; hash >= 10; hash /= 100) {
		const unsigned pair = (unsigned)(hash % 100);

		digits[--at] = (char)('0' + pair % 10);
		digits[--at] = (char)('0' + pair / 10);
	}
	if (hash > 0)
		digits[--at] = (char)('0' + hash);
	memcpy(name, "user", 4);
	memcpy(name + 4, digits + at, sizeof(digits) - at);
	name[4 + sizeof(digits) - at] = 0;
	return 4 + sizeof(digits) - at;
}

int32_t ycsb_name_hash(const char *name, size_t length)
{
	uint32_t hash = 0;

	for (size_t i = 0; i < length; i++)
		hash = hash * 31 + (unsigned char)name[i];
	return (int32_t)hash;
}

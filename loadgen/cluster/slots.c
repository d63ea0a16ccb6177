/* SPDX-License-Identifier: MIT */
/* CRC16 one byte at a time, with a table that is computed once. */
#include "slots.h"

#include <pthread.h>
#include <string.h>

static uint16_t table[256];

static void make_table(void)
{
	for (unsigned i = 0; i < 256; i++) {
		uint16_t crc = (uint16_t)(i << 8);

		for (int bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
		table[i] = crc;
	}
}

uint16_t crc16(const char *bytes, size_t length)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint16_t crc = 0;

	pthread_once(&once, make_table);
	for (size_t i = 0; i < length; i++)
		crc = (uint16_t)(crc << 8 ^ table[(crc >> 8 ^ (uint8_t)bytes[i]) & 0xff]);
	return crc;
}

uint16_t cluster_slot(const char *key, size_t length)
{
	const char *open = memchr(key, '{', length), *close;

	if (open) {
		close = memchr(open + 1, '}', length - (size_t)(open + 1 - key));
		if (close && close > open + 1) {
			length = (size_t)(close - open - 1);
			key = open + 1;
		}
	}
	return crc16(key, length) % CLUSTER_SLOTS;
}

/* SPDX-License-Identifier: MIT */
/* Points are a sorted array that never changes, so a key is found by bisection. Signed bytes and truncated
 * 64-bit constants look odd, but twemproxy computes its hashes this way. */
#include "ketama.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_PER_SERVER = 160, POINTS_PER_DIGEST = 4, DIGEST_BYTES = 16 };
/* Names omit this port. */
enum { PLAIN_PORT = 11211 };

static int by_value(const void *a, const void *b)
{
	const struct ketama_point *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	/* Never seen in practice; qsort alone would leave the order undefined. */
	return (int)x->server - (int)y->server;
}

static uint32_t word_at(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void ketama_name(const struct server_address *a, char *out, size_t size)
{
	if (a->socket)
		snprintf(out, size, "%s", a->socket);
	else if (a->port == PLAIN_PORT)
		snprintf(out, size, "%s", a->host);
	else
		snprintf(out, size, "%s:%u", a->host, a->port);
}

int ketama_init(struct ketama *k, const char *const *names, uint32_t count)
{
	uint8_t digest[EVP_MAX_MD_SIZE];
	char text[512];

	*k = (struct ketama){.points = calloc((size_t)count * POINTS_PER_SERVER, sizeof(*k->points))};
	if (!k->points)
		return -ENOMEM;
	for (uint32_t server = 0; server < count; server++) {
		for (int i = 0; i < POINTS_PER_SERVER / POINTS_PER_DIGEST; i++) {
			int length = snprintf(text, sizeof(text), "%s-%d", names[server], i);

			if (!EVP_Digest(text, (size_t)length, digest, NULL, EVP_md5(), NULL)) {
				ketama_free(k);
				return -EIO;
			}
			for (int p = 0; p < POINTS_PER_DIGEST; p++)
				k->points[k->count++] =
				    (struct ketama_point){word_at(digest + 4 * p), (uint16_t)server};
		}
	}
	qsort(k->points, k->count, sizeof(*k->points), by_value);
	return 0;
}

void ketama_free(struct ketama *k)
{
	free(k->points);
	*k = (struct ketama){0};
}

/* A byte of 128 or more is negative, as a char is on x86. */
uint32_t ketama_hash(const char *key, size_t length)
{
	uint32_t hash = (uint32_t)0xcbf29ce484222325u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint32_t)(signed char)key[i]) * (uint32_t)0x100000001b3u;
	return hash;
}

uint32_t ketama_server(const struct ketama *k, const char *key, size_t length)
{
	uint32_t hash = ketama_hash(key, length), low = 0, high = k->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (k->points[middle].value < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return k->points[low == k->count ? 0 : low].server;
}

/* SPDX-License-Identifier: MIT */
/* Values and keys in gathered replies. The scanner has found them well-formed before they get here. */
#include "inspection.h"

#include <stdlib.h>
#include <string.h>

struct inspection *inspection_new(void)
{
	return calloc(1, sizeof(struct inspection));
}

void inspection_free(struct inspection *i)
{
	if (i)
		free(i->reply.at);
	free(i);
}

void inspection_add(struct inspection *i, const char *from, const char *to)
{
	size_t count = (size_t)(to - from);

	if (i->overflow || i->reply.length + count > INSPECTION_BYTES_MAX ||
	    !bytes_reserve(&i->reply, count)) {
		i->overflow = true;
		return;
	}
	bytes_add(&i->reply, from, count);
}

void inspection_reset(struct inspection *i)
{
	i->reply.length = 0;
	i->overflow = false;
}

/* The number at *p, which ends before `end`; the bytes have no closing 0. */
static size_t digits_read(const char *p, const char *end)
{
	size_t n = 0;

	while (p < end && *p >= '0' && *p <= '9' && n <= INSPECTION_BYTES_MAX)
		n = n * 10 + (size_t)(*p++ - '0');
	return n;
}

/* Where the value begins in a reply of one value, and its length. */
static bool find_value(const struct inspection *i, enum protocol protocol, size_t *at, size_t *length)
{
	const char *reply = i->reply.at, *line;
	const uint8_t *header = (const uint8_t *)reply;

	if (i->overflow)
		return false;
	if (protocol == PROTOCOL_MEMCACHE_BINARY) {
		uint32_t body = (uint32_t)header[8] << 24 | (uint32_t)header[9] << 16 |
				(uint32_t)header[10] << 8 | header[11];
		size_t before = header[4] + ((size_t)header[2] << 8 | header[3]);

		*at = 24 + before;
		*length = body - before;
		return body >= before && *at + *length <= i->reply.length;
	}
	line = memchr(reply, '\r', i->reply.length);
	if (!line)
		return false;
	*at = (size_t)(line - reply) + 2;
	if (protocol == PROTOCOL_REDIS) {
		*length = reply[0] == '$' ? digits_read(reply + 1, line) : 0;
	} else {
		/* VALUE key flags bytes [cas]; VA bytes [flags] */
		const char *p = reply;
		for (int blanks = protocol == PROTOCOL_MEMCACHE_META ? 2 : 0; blanks < 3 && p < line; p++)
			blanks += *p == ' ';
		*length = digits_read(p, line);
	}
	return *at + *length <= i->reply.length;
}

int64_t inspection_check(const struct inspection *i, const struct workload *w, uint64_t key)
{
	uint64_t seed = value_seed_of_key(key);
	uint32_t wanted = value_size(&w->values, seed), common;
	size_t at, length;
	int64_t wrong;

	if (!find_value(i, w->protocol, &at, &length))
		return -2;
	common = length < wanted ? (uint32_t)length : wanted;
	wrong = value_check(&w->values, seed, 0, i->reply.at + at, common);
	return wrong >= 0 || length == wanted ? wrong : (int64_t)common;
}

uint64_t inspection_number(const struct inspection *i)
{
	return i->reply.length > 1 ? digits_read(i->reply.at + 1, i->reply.at + i->reply.length) : 0;
}

void inspection_capture(struct inspection *i)
{
	const char *p = i->reply.at, *end = p + i->reply.length;
	uint64_t count;
	char *after;

	i->captured = 0;
	if (i->overflow || i->reply.length < 4 || *p != '*')
		return;
	count = strtoull(p + 1, &after, 10);
	p = after + 2;
	for (uint64_t k = 0; k < count && k < YCSB_SCAN_MAX && p < end && *p == '$'; k++) {
		size_t length = strtoull(p + 1, &after, 10);

		p = after + 2;
		i->captured_at[i->captured] = (uint32_t)(p - i->reply.at);
		i->captured_length[i->captured++] = (uint32_t)length;
		p += length + 2;
	}
}

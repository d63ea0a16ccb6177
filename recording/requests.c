/* SPDX-License-Identifier: MIT */
/* The request log's columns: cheap to append to in the load generator's hot path, fast to decode by the
 * ten million.
 *
 * A varint here has its length in its first byte: the number of trailing zero bits, plus one. Appending is
 * then a shift, an 8-byte store and an addition for any value below 2^56, and decoding an 8-byte load and
 * two shifts; a varint with a continuation bit in each byte would branch on each byte.
 *
 *   n = 1..8 bytes: the value shifted left by n, with bit n-1 set below it; holds 7 * n bits
 *   9 bytes:        a zero byte and the value
 *
 * Times are differences: the end to the end before it (zigzag: pipelined answers and several connections
 * may step back), the duration, and how late it was sent. All wrap around at 2^64, so any values survive.
 *
 * A column of one value repeated is stored once: in a closed loop nothing is late, and most runs have one
 * status and one or two operations.
 */
#include "recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	VARINT_MAX = 9,
	COLUMN_BYTES = FT_REQUEST_BLOCK * VARINT_MAX + 8, /* a store of 8 bytes may reach beyond its value */
	COLUMNS = 6,
};

/* What a request block's payload begins with; the columns follow in this order. */
struct request_head {
	uint64_t base_ns;	 /* the first end is a difference to this */
	uint32_t bytes[COLUMNS]; /* end, duration, late, connection, op, status */
};

static uint8_t *column_start(const struct ft_requests *r, unsigned column)
{
	return r->columns + sizeof(struct request_head) + (size_t)column * COLUMN_BYTES;
}

static void rewind_columns(struct ft_requests *r)
{
	r->count = 0;
	r->base_ns = r->last_end_ns;
	r->end = column_start(r, 0);
	r->duration = column_start(r, 1);
	r->late = column_start(r, 2);
	r->connection = column_start(r, 3);
	r->op = column_start(r, 4);
	r->status = r->op + FT_REQUEST_BLOCK;
}

int ft_requests_init(struct ft_requests *r)
{
	memset(r, 0, sizeof(*r));
	r->columns = malloc(sizeof(struct request_head) + 4 * (size_t)COLUMN_BYTES + 2 * FT_REQUEST_BLOCK);
	if (!r->columns)
		return -ENOMEM;
	rewind_columns(r);
	return 0;
}

void ft_requests_free(struct ft_requests *r)
{
	free(r->columns);
	memset(r, 0, sizeof(*r));
}

static inline uint8_t *put_varint(uint8_t *to, uint64_t value)
{
	if (__builtin_expect(value < 1ull << 56, 1)) {
		unsigned n = (70 - (unsigned)__builtin_clzll(value | 1)) / 7;
		uint64_t word = (value * 2 + 1) << (n - 1);
		memcpy(to, &word, 8);
		return to + n;
	}
	*to = 0;
	memcpy(to + 1, &value, 8);
	return to + VARINT_MAX;
}

void ft_requests_append(struct ft_requests *r, const struct ft_request *q)
{
	uint64_t step = q->end_ns - r->last_end_ns;

	r->last_end_ns = q->end_ns;
	r->end = put_varint(r->end, step << 1 ^ (uint64_t)((int64_t)step >> 63));
	r->duration = put_varint(r->duration, q->end_ns - q->start_ns);
	r->late = put_varint(r->late, q->start_ns - q->intended_ns);
	r->connection = put_varint(r->connection, q->connection);
	r->op[r->count] = q->op;
	r->status[r->count] = q->status;
	r->count++;
}

/* 1 when all values of a column are the same byte, else its length. */
static uint32_t shortest(const uint8_t *column, size_t bytes, uint32_t count)
{
	if (bytes == count && !memcmp(column, column + 1, bytes - 1))
		return 1;
	return (uint32_t)bytes;
}

int ft_requests_flush(struct ft_requests *r, struct ft_writer *w)
{
	struct request_head head = {.base_ns = r->base_ns};
	const uint8_t *from[COLUMNS] = {
	    column_start(r, 0), column_start(r, 1), column_start(r, 2), column_start(r, 3), r->op, r->status};
	const uint8_t *end[COLUMNS] = {r->end,	      r->duration,	r->late,
				       r->connection, r->op + r->count, r->status + r->count};
	uint8_t *to = r->columns + sizeof(head);
	int rc;

	if (!r->count)
		return 0;
	for (unsigned i = 0; i < COLUMNS; i++) {
		head.bytes[i] = shortest(from[i], (size_t)(end[i] - from[i]), r->count);
		memmove(to, from[i], head.bytes[i]); /* each moves down, over what is stored already */
		to += head.bytes[i];
	}
	memcpy(r->columns, &head, sizeof(head));
	rc = ft_writer_block(w, FT_BLOCK_REQUEST, 0, r->count, r->columns, (size_t)(to - r->columns));
	rewind_columns(r);
	return rc;
}

/* A column being decoded. `end` bounds the values, `payload_end` what may be loaded. */
struct column {
	const uint8_t *at, *end, *payload_end;
	bool bad;
	bool same; /* one value stands for all */
};

static uint64_t get_varint(struct column *c)
{
	const uint8_t *at = c->at;
	uint8_t padded[16] = {0};
	uint64_t word;
	unsigned n;

	if (at >= c->end) {
		c->bad = true;
		return 0;
	}
	n = (unsigned)__builtin_ctz(*at | 0x100u) + 1;
	if (n > (size_t)(c->end - at)) {
		c->bad = true;
		return 0;
	}
	if (!c->same)
		c->at += n;
	if (__builtin_expect(c->payload_end - at < VARINT_MAX, 0)) {
		memcpy(padded, at, n);
		at = padded;
	}
	if (__builtin_expect(n == VARINT_MAX, 0)) {
		memcpy(&word, at + 1, 8);
		return word;
	}
	memcpy(&word, at, 8);
	return (word << (64 - 8 * n)) >> (64 - 7 * n);
}

/* A column that holds one value while the block holds more stands for that value repeated. */
static void find_same(struct column *c, uint32_t count)
{
	if (c->at < c->end && count > 1)
		c->same = (size_t)(c->end - c->at) == (size_t)__builtin_ctz(*c->at | 0x100u) + 1;
}

static bool decode_times(struct column *c, uint64_t base_ns, uint32_t count,
			 const struct ft_request_columns *out)
{
	struct column end = c[0], duration = c[1], late = c[2];
	uint64_t end_ns = base_ns;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t zigzag = get_varint(&end);
		uint64_t start_ns;

		end_ns += zigzag >> 1 ^ -(zigzag & 1);
		start_ns = end_ns - get_varint(&duration);
		if (out->end_ns)
			out->end_ns[i] = end_ns;
		if (out->start_ns)
			out->start_ns[i] = start_ns;
		if (out->intended_ns)
			out->intended_ns[i] = start_ns - get_varint(&late);
	}
	c[0] = end;
	c[1] = duration;
	c[2] = late;
	return !end.bad && !duration.bad && !late.bad;
}

static bool decode_connections(struct column *c, uint32_t count, uint32_t *out)
{
	struct column column = *c;
	uint64_t all = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t value = get_varint(&column);
		all |= value;
		out[i] = (uint32_t)value;
	}
	*c = column;
	return !column.bad && all <= UINT32_MAX;
}

static bool decode_bytes(const struct column *c, uint32_t count, uint8_t *out)
{
	size_t bytes = (size_t)(c->end - c->at);

	if (bytes != 1 && bytes != count)
		return false;
	if (out && bytes == 1)
		memset(out, *c->at, count);
	else if (out)
		memcpy(out, c->at, count);
	return true;
}

int ft_requests_decode(const void *payload, size_t bytes, uint32_t count,
		       const struct ft_request_columns *out)
{
	struct request_head head;
	struct column c[COLUMNS] = {0};
	const uint8_t *at = payload;
	size_t left;

	if (!count || count > FT_REQUEST_BLOCK || bytes < sizeof(head))
		return -EBADMSG;
	memcpy(&head, at, sizeof(head));
	at += sizeof(head);
	left = bytes - sizeof(head);
	for (unsigned i = 0; i < COLUMNS; i++) {
		if (head.bytes[i] > left)
			return -EBADMSG;
		c[i].at = at;
		at += head.bytes[i];
		left -= head.bytes[i];
		c[i].end = at;
		c[i].payload_end = (const uint8_t *)payload + bytes;
		if (i < 4)
			find_same(&c[i], count);
	}
	if (left)
		return -EBADMSG;
	if ((out->end_ns || out->start_ns || out->intended_ns) && !decode_times(c, head.base_ns, count, out))
		return -EBADMSG;
	if (out->connection && !decode_connections(&c[3], count, out->connection))
		return -EBADMSG;
	if (!decode_bytes(&c[4], count, out->op) || !decode_bytes(&c[5], count, out->status))
		return -EBADMSG;
	return (int)count;
}

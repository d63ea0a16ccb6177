/* SPDX-License-Identifier: MIT */
/* The request log's columns: cheap to append to in the load generator's hot path, fast to decode by the ten
 * million.
 *
 * A varint here has its length in its first byte: the number of trailing zero bits, plus one. Appending is
 * then a shift, an 8-byte store and an addition for any value below 2^56, and decoding an 8-byte load and two
 * shifts. A varint with a continuation bit in each byte would branch on each byte.
 *
 *   n = 1..8 bytes: the value shifted left by n, with bit n-1 set below it; holds 7 * n bits
 *   9 bytes:        a zero byte and the value
 *
 * Times are differences: the end to the previous end (zigzag: with pipelining and several connections it may
 * decrease), the duration, and how late it was sent. All wrap around at 2^64, so any values survive.
 *
 * A column of one repeated value is stored once: in a closed loop nothing is late, and most runs have one
 * status and one or two operations. Data that few runs have is in an additional column, which others omit.
 *
 * The columns are not compressed. Measured (bench/recording_bench.cc): zstd at level 1 turns 10.9 bytes of a
 * request into 8.2, for 25 ns more on the client and 17 ns more in the analysis, where appending costs 10 ns,
 * writing 8 and decoding 17. A quarter of the disk space is not worth doubling the client's cost per
 * request. */
#include "recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cover.h"
#include "layout.h"
#include "request_columns.h"

enum {
	COLUMN_BYTES = FT_REQUEST_BLOCK * VARINT_MAX + 8, /* a store of 8 bytes may reach beyond its value */
	/* Where the columns of struct ft_request_seen are: each has space for its length before it. */
	SEEN_BYTES = FURTHER_HEAD + COLUMN_BYTES,
	SEEN_START = sizeof(struct request_head) + 5 * COLUMN_BYTES + 3 * FT_REQUEST_BLOCK + 2 * FURTHER_HEAD,
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
	r->behind = r->status + FT_REQUEST_BLOCK;
	r->any_behind = 0;
	r->arrival = r->behind + FT_REQUEST_BLOCK + FURTHER_HEAD;
	r->any_arrival = false;
	r->any_seen = false;
	r->first_ns = UINT64_MAX;
	r->latest_ns = 0;
}

int ft_requests_init(struct ft_requests *r)
{
	memset(r, 0, sizeof(*r));
	r->columns = malloc(SEEN_START + SEEN_COLUMNS * (size_t)SEEN_BYTES);
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

/* `times` varints of one value, at least one. */
static inline uint8_t *put_varints(uint8_t *to, uint64_t value, uint32_t times)
{
	if (__builtin_expect(value < 1ull << 56, 1)) {
		/* ceil(bits / 7) without a division: exact up to 56 bits. */
		unsigned n = ((63 - (unsigned)__builtin_clzll(value | 1)) * 9 + 73) / 64;
		uint64_t word = (value * 2 + 1) << (n - 1);
		do {
			memcpy(to, &word, 8);
			to += n;
		} while (--times);
		return to;
	}
	do {
		*to = 0;
		memcpy(to + 1, &value, 8);
		to += VARINT_MAX;
	} while (--times);
	return to;
}

static inline uint8_t *put_varint(uint8_t *to, uint64_t value)
{
	return put_varints(to, value, 1);
}

/* The answer's socket-buffer wait plus one; 0 if unknown, as for those before the first known one. */
static __attribute__((noinline)) void append_arrivals(struct ft_requests *r, const struct ft_request *q,
						      uint32_t times)
{
	enum { ZERO = 1 }; /* its varint */

	if (!r->any_arrival) {
		memset(r->arrival, ZERO, r->count);
		r->arrival += r->count;
		r->any_arrival = true;
	}
	r->arrival = put_varints(r->arrival, q->arrival_ns ? q->end_ns - q->arrival_ns + 1 : 0, times);
}

/* The previous end may have been the block's latest. */
static void step_back(struct ft_requests *r)
{
	if (r->count && r->last_end_ns > r->latest_ns)
		r->latest_ns = r->last_end_ns;
}

/* The columns of requests that are equal to the last one. */
static __attribute__((noinline)) void append_equal(struct ft_requests *r, const struct ft_request *q,
						   uint32_t times)
{
	uint32_t at = r->count;

	r->count += times;
	r->end = put_varints(r->end, 0, times);
	r->duration = put_varints(r->duration, q->end_ns - q->start_ns, times);
	r->late = put_varints(r->late, q->start_ns - q->intended_ns, times);
	r->connection = put_varints(r->connection, q->connection, times);
	memset(r->op + at, q->op, times);
	memset(r->status + at, q->status, times);
	memset(r->behind + at, q->behind, times);
}

void ft_requests_append_equal(struct ft_requests *r, const struct ft_request *q, uint32_t times)
{
	/* Locals first: the compiler must assume that any byte stored below may be in *r or *q. */
	uint8_t *end = r->end, *duration = r->duration, *late = r->late, *connection = r->connection;
	uint8_t *op = r->op + r->count, *status = r->status + r->count, *behind = r->behind + r->count;
	const struct ft_request request = *q;
	uint64_t step = request.end_ns - r->last_end_ns;

	if (__builtin_expect(request.arrival_ns || r->any_arrival, 0))
		append_arrivals(r, q, times);
	/* Branches that are rarely taken: a minimum and a maximum would each be a store. */
	if (__builtin_expect(request.intended_ns < r->first_ns, 0))
		r->first_ns = request.intended_ns;
	if (__builtin_expect(request.end_ns < r->last_end_ns, 0))
		step_back(r);
	r->count++;
	r->last_end_ns = request.end_ns;
	r->end = put_varint(end, step << 1 ^ (uint64_t)((int64_t)step >> 63));
	r->duration = put_varint(duration, request.end_ns - request.start_ns);
	r->late = put_varint(late, request.start_ns - request.intended_ns);
	r->connection = put_varint(connection, request.connection);
	*op = request.op;
	*status = request.status;
	*behind = request.behind;
	r->any_behind |= request.behind;
	if (times > 1)
		append_equal(r, q, times - 1);
}

static uint8_t *seen_start(const struct ft_requests *r, unsigned column)
{
	return r->columns + SEEN_START + FURTHER_HEAD + (size_t)column * SEEN_BYTES;
}

void ft_requests_append_seen(struct ft_requests *r, const struct ft_request *q,
			     const struct ft_request_seen *seen)
{
	const uint64_t values[SEEN_COLUMNS] = {
	    seen->read_ns ? seen->read_ns - q->start_ns + 1 : 0,
	    seen->written_ns ? seen->written_ns - q->end_ns + 1 : 0,
	    seen->request_bytes,
	    seen->answer_bytes,
	};

	if (!r->any_seen)
		for (unsigned i = 0; i < SEEN_COLUMNS; i++)
			r->seen[i] = seen_start(r, i);
	r->any_seen = true;
	for (unsigned i = 0; i < SEEN_COLUMNS; i++)
		r->seen[i] = put_varint(r->seen[i], values[i]);
	ft_requests_append(r, q);
}

/* 1 if all values of a column are the same byte, else its length. */
static uint32_t shortest(const uint8_t *column, size_t bytes, uint32_t count)
{
	if (bytes == count && !memcmp(column, column + 1, bytes - 1))
		return 1;
	return (uint32_t)bytes;
}

/* An additional column, after its length: its old and new place may overlap. Returns the end of it. */
static uint8_t *move_further(uint8_t *to, const uint8_t *column, size_t length, uint32_t count)
{
	uint32_t bytes = shortest(column, length, count);

	memmove(to + FURTHER_HEAD, column, bytes);
	memcpy(to, &bytes, FURTHER_HEAD);
	return to + FURTHER_HEAD + bytes;
}

/* The additional columns of the block, after the six: none if no request has any of them. */
static uint8_t *move_all_further(const struct ft_requests *r, uint8_t *to)
{
	static const uint8_t unknown = 1; /* its varint */
	const uint8_t *arrival = r->behind + FT_REQUEST_BLOCK + FURTHER_HEAD;

	if (r->any_behind || r->any_arrival || r->any_seen)
		to = move_further(to, r->behind, r->count, r->count);
	if (r->any_arrival)
		to = move_further(to, arrival, (size_t)(r->arrival - arrival), r->count);
	else if (r->any_seen)
		to = move_further(to, &unknown, sizeof(unknown), r->count);
	for (unsigned i = 0; r->any_seen && i < SEEN_COLUMNS; i++)
		to = move_further(to, seen_start(r, i), (size_t)(r->seen[i] - seen_start(r, i)), r->count);
	return to;
}

/* The lowest format version whose readers expect all columns of the block. */
static uint8_t version_of(const struct ft_requests *r)
{
	if (r->any_seen)
		return 3;
	return r->any_behind || r->any_arrival ? 2 : 1;
}

int ft_requests_flush(struct ft_requests *r, struct ft_writer *w)
{
	struct request_head head = {.base_ns = r->base_ns};
	const uint8_t *from[COLUMNS] = {
	    column_start(r, 0), column_start(r, 1), column_start(r, 2), column_start(r, 3), r->op, r->status};
	const uint8_t *end[COLUMNS] = {r->end,	      r->duration,	r->late,
				       r->connection, r->op + r->count, r->status + r->count};
	uint8_t *to = r->columns + sizeof(head);
	uint64_t latest_ns = r->last_end_ns > r->latest_ns ? r->last_end_ns : r->latest_ns;
	int rc;

	if (!r->count)
		return 0;
	for (unsigned i = 0; i < COLUMNS; i++) {
		head.bytes[i] = shortest(from[i], (size_t)(end[i] - from[i]), r->count);
		memmove(to, from[i], head.bytes[i]); /* each moves down, over bytes that are already stored */
		to += head.bytes[i];
	}
	memcpy(r->columns, &head, sizeof(head));
	to = move_all_further(r, to);
	rc = ft_writer_requests(w, version_of(r), r->count, ft_cover_between(r->first_ns, latest_ns),
				r->columns, (size_t)(to - r->columns));
	rewind_columns(r);
	return rc;
}

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
 * writing 8 and decoding 17. A quarter of the disk space is not worth doubling the client's cost per request.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "recording/recording.h"

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
	if (!r->any_arrival) {
		memset(r->arrival, VARINT_ZERO, r->count);
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

/* Decodes the request log's columns, by the ten million. requests.c appends them and says how they are
 * stored. A payload is not trusted: nothing outside it is read, whatever its lengths are. */

enum { VARINT_COLUMNS = 4, CHUNK = 256 };

/* A column of varints being decoded. */
struct column {
	const uint8_t *at, *end;
	unsigned step; /* all ones; zero for a column with one repeated value */
};

static inline unsigned varint_bytes(const uint8_t *at)
{
	return (unsigned)__builtin_ctz(*at | 0x100u) + 1;
}

/* The next value of a column that has VARINT_MAX bytes left. */
static inline uint64_t next_value(struct column *c)
{
	unsigned n = varint_bytes(c->at);
	uint64_t word;

	if (__builtin_expect(n == VARINT_MAX, 0)) {
		memcpy(&word, c->at + 1, 8);
	} else {
		memcpy(&word, c->at, 8);
		word = word << (64 - 8 * n) >> (64 - 7 * n);
	}
	c->at += n & c->step;
	return word;
}

/* The next value of a column with any number of bytes left; false if it has none. */
static bool next_checked(struct column *c, uint64_t *value)
{
	uint8_t padded[VARINT_MAX] = {0};
	struct column copy = {.at = padded};
	unsigned n;

	if (c->at >= c->end)
		return false;
	n = varint_bytes(c->at);
	if (n > (size_t)(c->end - c->at))
		return false;
	memcpy(padded, c->at, n);
	*value = next_value(&copy);
	c->at += n & c->step;
	return true;
}

/* How many of the next `wanted` values are certainly in the column, whatever their lengths. */
static uint32_t sure_values(const struct column *c, uint32_t wanted)
{
	size_t sure = (size_t)(c->end - c->at) / VARINT_MAX;

	return sure < wanted && c->step ? (uint32_t)sure : wanted;
}

/* How many rows after one, at most `most` and eight, equal it: its values began at `before`, and all columns
 * have VARINT_MAX bytes left for each of `most`. Advances the columns by so many rows. The requests of a
 * pipeline are often sent together and answered together: each has the end of the one before it. */
static uint32_t skip_equal(struct column *c, const uint8_t *const before[VARINT_COLUMNS], uint32_t most)
{
	static const uint64_t same_ends = 0x0101010101010101 * VARINT_ZERO;
	uint64_t ends;
	uint32_t count;

	memcpy(&ends, c[0].at, 8);
	count = ends == same_ends ? 8 : (uint32_t)__builtin_ctzll(ends ^ same_ends) / 8;
	count = count < most ? count : most;
	for (unsigned i = 1; i < VARINT_COLUMNS; i++)
		if (memcmp(before[i], c[i].at, (size_t)(c[i].at - before[i]) * count))
			return 0;
	c[0].at += count;
	for (unsigned i = 1; i < VARINT_COLUMNS; i++)
		c[i].at += (c[i].at - before[i]) * count;
	return count;
}

static inline void next_row(struct column *c, uint64_t values[VARINT_COLUMNS][CHUNK], uint32_t row)
{
	values[0][row] = next_value(&c[0]);
	values[1][row] = next_value(&c[1]);
	values[2][row] = next_value(&c[2]);
	values[3][row] = next_value(&c[3]);
}

/* A row and those that equal it, at most `most`. Returns their number. */
static uint32_t next_rows(struct column *c, uint64_t values[VARINT_COLUMNS][CHUNK], uint32_t row,
			  uint32_t most)
{
	const uint8_t *const before[] = {c[0].at, c[1].at, c[2].at, c[3].at};
	uint32_t equal;

	next_row(c, values, row);
	equal = skip_equal(c, before, most - 1);
	for (uint32_t i = row + 1; i <= row + equal; i++) {
		values[0][i] = 0;
		for (unsigned column = 1; column < VARINT_COLUMNS; column++)
			values[column][i] = values[column][row];
	}
	return 1 + equal;
}

/* Decodes `rows` values of each column. All columns in parallel: finding where a value ends depends on the
 * one before it. Four such chains at a time keep the processor busy, where one would make it wait. */
static bool decode_rows(struct column *columns, uint32_t rows, uint64_t values[VARINT_COLUMNS][CHUNK])
{
	struct column c[VARINT_COLUMNS];

	memcpy(c, columns, sizeof(c));
	for (uint32_t row = 0; row < rows; row++) {
		uint32_t sure = rows - row;

		for (unsigned i = 0; i < VARINT_COLUMNS; i++)
			sure = sure_values(&c[i], sure);
		while (sure) {
			/* If the next end is the same, the row may be, too. */
			bool alike = sure > 1 && c[0].step && c[0].at[varint_bytes(c[0].at)] == VARINT_ZERO;
			uint32_t done = 1;

			if (alike)
				done = next_rows(c, values, row, sure);
			else
				next_row(c, values, row);
			sure -= done;
			row += done;
		}
		for (unsigned i = 0; i < VARINT_COLUMNS && row < rows; i++)
			if (!next_checked(&c[i], &values[i][row]))
				return false;
	}
	memcpy(columns, c, sizeof(c));
	return true;
}

static bool decode_varints(struct column *c, uint64_t end_ns, uint32_t count,
			   const struct ft_request_columns *out)
{
	uint64_t values[VARINT_COLUMNS][CHUNK], connections = 0, unwanted_ns[CHUNK];
	uint32_t unwanted[CHUNK];

	for (uint32_t first = 0; first < count; first += CHUNK) {
		uint32_t rows = count - first < CHUNK ? count - first : CHUNK;
		uint64_t *end = out->end_ns ? out->end_ns + first : unwanted_ns;
		uint64_t *start = out->start_ns ? out->start_ns + first : unwanted_ns;
		uint64_t *intended = out->intended_ns ? out->intended_ns + first : unwanted_ns;
		uint32_t *connection = out->connection ? out->connection + first : unwanted;

		if (!decode_rows(c, rows, values))
			return false;
		for (uint32_t row = 0; row < rows; row++) {
			uint64_t zigzag = values[0][row], start_ns;

			end_ns += zigzag >> 1 ^ -(zigzag & 1);
			start_ns = end_ns - values[1][row];
			connections |= values[3][row];
			end[row] = end_ns;
			start[row] = start_ns;
			intended[row] = start_ns - values[2][row];
			connection[row] = (uint32_t)values[3][row];
		}
	}
	for (unsigned i = 0; i < VARINT_COLUMNS; i++)
		if (c[i].step && c[i].at != c[i].end)
			return false;
	return connections <= UINT32_MAX;
}

static bool decode_bytes(const uint8_t *at, uint32_t bytes, uint32_t count, uint8_t *out)
{
	if (bytes != 1 && bytes != count)
		return false;
	if (out && bytes == 1)
		memset(out, *at, count);
	else if (out)
		memcpy(out, at, count);
	return true;
}

/* The additional columns of a payload. NULL: it has none, or a placeholder. */
struct further {
	const uint8_t *at[FURTHER_COLUMNS];
	uint32_t bytes[FURTHER_COLUMNS];
	bool seen; /* it has the columns of struct ft_request_seen, whatever they contain */
};

static bool open_further(const uint8_t *at, uint64_t bytes, struct further *f)
{
	/* A 0 byte, or the varint 0. */
	static const uint8_t nothing[FURTHER_COLUMNS] = {0, 1, 1, 1, 1, 1};
	uint32_t length;
	unsigned i;

	*f = (struct further){0};
	for (i = 0; bytes > 0; i++) {
		if (bytes < FURTHER_HEAD)
			return false;
		memcpy(&length, at, FURTHER_HEAD);
		bytes -= FURTHER_HEAD;
		if (!length || length > bytes)
			return false;
		at += FURTHER_HEAD;
		if (i < FURTHER_COLUMNS && (length > 1 || *at != nothing[i])) {
			f->at[i] = at;
			f->bytes[i] = length;
		}
		at += length;
		bytes -= length;
	}
	f->seen = i >= FURTHER_COLUMNS;
	return true;
}

/* The head of a payload, and the size of it and the six columns; 0 if it is invalid. */
static uint64_t open_head(const void *payload, size_t bytes, struct request_head *head)
{
	uint64_t total = sizeof(*head);

	if (bytes < sizeof(*head))
		return 0;
	memcpy(head, payload, sizeof(*head));
	for (unsigned i = 0; i < COLUMNS; i++)
		total += head->bytes[i];
	return total <= bytes ? total : 0;
}

/* False if it is invalid, too. */
static bool find_further(const void *payload, size_t bytes, struct further *further)
{
	struct request_head head;
	uint64_t total = open_head(payload, bytes, &head);

	return total && open_further((const uint8_t *)payload + total, bytes - total, further);
}

bool ft_requests_have_behind(const void *payload, size_t bytes)
{
	struct further further;

	return find_further(payload, bytes, &further) && further.at[COLUMN_BEHIND];
}

bool ft_requests_have_arrivals(const void *payload, size_t bytes)
{
	struct further further;

	return find_further(payload, bytes, &further) && further.at[COLUMN_ARRIVAL];
}

bool ft_requests_have_seen(const void *payload, size_t bytes)
{
	struct further further;

	return find_further(payload, bytes, &further) && further.seen;
}

/* A column of varints; `same` is for a single value that represents all in a block of several. */
static struct column column_of(const uint8_t *at, uint32_t bytes, uint32_t count, uint8_t same[VARINT_MAX])
{
	if (count < 2 || !bytes || varint_bytes(at) != bytes)
		return (struct column){.at = at, .end = at + bytes, .step = ~0u};
	memcpy(same, at, bytes);
	return (struct column){.at = same, .end = same + VARINT_MAX, .step = 0};
}

/* The positions of a payload's columns. False if it is invalid. */
static bool open_columns(const void *payload, size_t bytes, uint32_t count, struct request_head *head,
			 struct column c[VARINT_COLUMNS], uint8_t same[VARINT_COLUMNS][VARINT_MAX],
			 const uint8_t **rest, struct further *further)
{
	const uint8_t *at = (const uint8_t *)payload + sizeof(*head);
	uint64_t total = open_head(payload, bytes, head);

	if (!count || count > FT_REQUEST_BLOCK || !total ||
	    !open_further((const uint8_t *)payload + total, bytes - total, further))
		return false;
	for (unsigned i = 0; i < VARINT_COLUMNS; at += head->bytes[i++])
		c[i] = column_of(at, head->bytes[i], count, same[i]);
	*rest = at;
	return true;
}

/* Adds the next values of a column to `sums`. A separate dependency chain: the other columns are not read. */
static bool add_rows(struct column *c, uint32_t count, uint64_t *sums)
{
	uint64_t value;

	for (uint32_t row = 0; row < count;) {
		uint32_t sure = sure_values(c, count - row);

		if (!sure) {
			if (!next_checked(c, &value))
				return false;
			sums[row++] += value;
		}
		for (; sure; sure--)
			sums[row++] += next_value(c);
	}
	return true;
}

/* Whether all values were read, which is not required of a single one that represents all. */
static bool at_end(const struct column *c)
{
	return !c->step || c->at == c->end;
}

static bool add_column(struct column c, uint32_t count, uint64_t *sums)
{
	return add_rows(&c, count, sums) && at_end(&c);
}

/* Times that are stored as a difference to `to_ns` plus one. */
static bool decode_times(const struct further *further, enum further_column which, uint32_t count,
			 const uint64_t *to_ns, bool before, uint64_t *times)
{
	uint8_t same[VARINT_MAX] = {0};

	memset(times, 0, sizeof(*times) * count);
	if (!further->at[which])
		return true;
	if (!add_column(column_of(further->at[which], further->bytes[which], count, same), count, times))
		return false;
	for (uint32_t row = 0; row < count; row++)
		if (times[row])
			times[row] = before ? to_ns[row] - (times[row] - 1) : to_ns[row] + (times[row] - 1);
	return true;
}

static bool decode_sizes(const struct further *further, enum further_column which, uint32_t count,
			 uint32_t *sizes)
{
	uint8_t same[VARINT_MAX] = {0};
	struct column c;

	memset(sizes, 0, sizeof(*sizes) * count);
	if (!further->at[which])
		return true;
	c = column_of(further->at[which], further->bytes[which], count, same);
	for (uint32_t first = 0; first < count; first += CHUNK) {
		uint32_t rows = count - first < CHUNK ? count - first : CHUNK;
		uint64_t values[CHUNK] = {0};

		if (!add_rows(&c, rows, values))
			return false;
		for (uint32_t row = 0; row < rows; row++) {
			if (values[row] > UINT32_MAX)
				return false;
			sizes[first + row] = (uint32_t)values[row];
		}
	}
	return at_end(&c);
}

static bool decode_further(const struct further *f, uint32_t count, const struct ft_request_columns *out)
{
	const uint8_t *behind = f->at[COLUMN_BEHIND];

	if (behind && !decode_bytes(behind, f->bytes[COLUMN_BEHIND], count, out->behind))
		return false;
	if (!behind && out->behind)
		memset(out->behind, 0, count);
	if (out->arrival_ns && !decode_times(f, COLUMN_ARRIVAL, count, out->end_ns, true, out->arrival_ns))
		return false;
	if (out->read_ns && !decode_times(f, COLUMN_READ, count, out->start_ns, false, out->read_ns))
		return false;
	if (out->written_ns && !decode_times(f, COLUMN_WRITTEN, count, out->end_ns, false, out->written_ns))
		return false;
	if (out->request_bytes && !decode_sizes(f, COLUMN_REQUEST_BYTES, count, out->request_bytes))
		return false;
	return !out->answer_bytes || decode_sizes(f, COLUMN_ANSWER_BYTES, count, out->answer_bytes);
}

int ft_requests_decode(const void *payload, size_t bytes, uint32_t count,
		       const struct ft_request_columns *out)
{
	struct request_head head;
	struct column c[VARINT_COLUMNS];
	uint8_t same[VARINT_COLUMNS][VARINT_MAX] = {0};
	struct further further;
	const uint8_t *at;

	if (!open_columns(payload, bytes, count, &head, c, same, &at, &further))
		return -EBADMSG;
	if (!decode_varints(c, head.base_ns, count, out))
		return -EBADMSG;
	if (!decode_bytes(at, head.bytes[4], count, out->op) ||
	    !decode_bytes(at + head.bytes[4], head.bytes[5], count, out->status))
		return -EBADMSG;
	return decode_further(&further, count, out) ? (int)count : -EBADMSG;
}

int ft_requests_latencies(const void *payload, size_t bytes, uint32_t count, uint64_t *latency_ns,
			  uint8_t *op)
{
	struct request_head head;
	struct column c[VARINT_COLUMNS];
	uint8_t same[VARINT_COLUMNS][VARINT_MAX] = {0};
	struct further further;
	const uint8_t *at;

	if (!open_columns(payload, bytes, count, &head, c, same, &at, &further))
		return -EBADMSG;
	memset(latency_ns, 0, sizeof(*latency_ns) * count);
	if (!add_column(c[1], count, latency_ns) || !add_column(c[2], count, latency_ns) ||
	    !decode_bytes(at, head.bytes[4], count, op))
		return -EBADMSG;
	return (int)count;
}

/* Three of the columns, without storing requests. */
struct ft_cover ft_cover_requests(const void *payload, size_t bytes, uint32_t count)
{
	static const uint8_t nothing[VARINT_MAX] = {1}; /* the varint */
	struct request_head head;
	struct column c[VARINT_COLUMNS];
	uint8_t same[VARINT_COLUMNS][VARINT_MAX] = {0};
	struct further further;
	const uint8_t *at;
	uint64_t values[VARINT_COLUMNS][CHUNK], end_ns, earliest = UINT64_MAX, latest = 0;

	if (!open_columns(payload, bytes, count, &head, c, same, &at, &further))
		return (struct ft_cover){0};
	c[3] = (struct column){.at = nothing, .end = nothing + VARINT_MAX, .step = 0};
	end_ns = head.base_ns;
	for (uint32_t first = 0; first < count; first += CHUNK) {
		uint32_t rows = count - first < CHUNK ? count - first : CHUNK;

		if (!decode_rows(c, rows, values))
			return (struct ft_cover){0};
		for (uint32_t row = 0; row < rows; row++) {
			uint64_t zigzag = values[0][row], intended_ns;

			end_ns += zigzag >> 1 ^ -(zigzag & 1);
			intended_ns = end_ns - values[1][row] - values[2][row];
			earliest = intended_ns < earliest ? intended_ns : earliest;
			latest = end_ns > latest ? end_ns : latest;
		}
	}
	return ft_cover_between(earliest, latest);
}

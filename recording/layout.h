/* SPDX-License-Identifier: MIT */
/* The bytes of a file. Inside the library only. */
#ifndef FORKTAIL_RECORDING_LAYOUT_H
#define FORKTAIL_RECORDING_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

#include "recording/recording.h"

/* The time range of a block's records: the writer stores it in the index, and a reader computes it for a file
 * without one. */

/* Times beyond it, more than a hundred years of uptime, are damage. */
#define FT_COVER_LIMIT_NS (1ull << 62)

/* From the earliest begin to the latest end. Both 0: no time is known, and the block may belong to any
 * time. */
struct ft_cover {
	uint64_t start_ns, end_ns;
};

/* The range of two times from any source: neither is beyond the limit, nor the end before the start. */
static inline struct ft_cover ft_cover_between(uint64_t start_ns, uint64_t end_ns)
{
	struct ft_cover c = {start_ns, end_ns};

	c.start_ns = c.start_ns > FT_COVER_LIMIT_NS ? FT_COVER_LIMIT_NS : c.start_ns;
	c.end_ns = c.end_ns > FT_COVER_LIMIT_NS ? FT_COVER_LIMIT_NS : c.end_ns;
	c.end_ns = c.end_ns < c.start_ns ? c.start_ns : c.end_ns;
	return c;
}

/* Of `count` records of a kind that is an array of a struct; 0 and 0 for every other kind. */
struct ft_cover ft_cover_records(uint32_t kind, uint32_t record_size, uint32_t count, const void *payload);

/* Of request columns; 0 and 0 for an invalid payload. */
struct ft_cover ft_cover_requests(const void *payload, size_t bytes, uint32_t count);

/* What the writer and the reader share beyond the records: which kinds are arrays of which struct. Private to
 * recording/. */

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "recordings are little-endian and are read and written without conversion"
#endif

/* The sizes are part of the format: any change except growth at the end breaks old recordings. */
_Static_assert(sizeof(struct ft_block_header) == 36, "block header");
_Static_assert(sizeof(struct ft_thread) == 80, "thread");
_Static_assert(sizeof(struct ft_span) == 80, "span");
_Static_assert(sizeof(struct ft_cpu_slice) == 40, "CPU slice");
_Static_assert(sizeof(struct ft_loop) == 24, "loop");
_Static_assert(sizeof(struct ft_socket) == 56, "socket");
_Static_assert(sizeof(struct ft_tally) == 48, "tally");
_Static_assert(sizeof(struct ft_io) == 56, "io");
_Static_assert(sizeof(struct ft_writes) == 48, "writes");
_Static_assert(sizeof(struct ft_sample) == 24, "sample");
_Static_assert(sizeof(struct ft_drop) == 32, "drop");
_Static_assert(sizeof(struct ft_clock) == 32, "clock");
_Static_assert(sizeof(struct ft_probe) == 40, "probe");
_Static_assert(sizeof(struct ft_connection) == 160, "connection");
_Static_assert(sizeof(struct ft_index_entry) == 40, "index entry");
_Static_assert(sizeof(struct ft_trailer) == 16, "trailer");
_Static_assert(sizeof(struct ft_cpu_sample) == 24, "cpu sample");
_Static_assert(sizeof(struct ft_counters) == 32, "counters");
_Static_assert(sizeof(struct ft_tcp_event) == 80, "TCP event");
_Static_assert(sizeof(struct ft_tcp_state) == 112, "TCP state");
_Static_assert(sizeof(struct ft_load_tcp) == 48, "TCP of the load generator");

/* Bytes of one record of a kind, or 0 for kinds that are not arrays of a struct. */
static inline uint32_t ft_record_size(unsigned kind)
{
	switch (kind) {
	case FT_BLOCK_THREAD:
		return sizeof(struct ft_thread);
	case FT_BLOCK_SPAN:
	case FT_BLOCK_OPEN:
		return sizeof(struct ft_span);
	case FT_BLOCK_TALLY:
		return sizeof(struct ft_tally);
	case FT_BLOCK_IO:
		return sizeof(struct ft_io);
	case FT_BLOCK_CPU_SLICE:
		return sizeof(struct ft_cpu_slice);
	case FT_BLOCK_LOOP:
		return sizeof(struct ft_loop);
	case FT_BLOCK_SOCKET:
		return sizeof(struct ft_socket);
	case FT_BLOCK_WRITES:
		return sizeof(struct ft_writes);
	case FT_BLOCK_SAMPLE:
		return sizeof(struct ft_sample);
	case FT_BLOCK_DROP:
		return sizeof(struct ft_drop);
	case FT_BLOCK_CLOCK:
		return sizeof(struct ft_clock);
	case FT_BLOCK_PROBE:
		return sizeof(struct ft_probe);
	case FT_BLOCK_CONNECTION:
		return sizeof(struct ft_connection);
	case FT_BLOCK_INDEX:
		return sizeof(struct ft_index_entry);
	case FT_BLOCK_TRAILER:
		return sizeof(struct ft_trailer);
	case FT_BLOCK_CPU_SAMPLE:
		return sizeof(struct ft_cpu_sample);
	case FT_BLOCK_COUNTERS:
		return sizeof(struct ft_counters);
	case FT_BLOCK_TCP_EVENT:
		return sizeof(struct ft_tcp_event);
	case FT_BLOCK_TCP_STATE:
		return sizeof(struct ft_tcp_state);
	case FT_BLOCK_LOAD_TCP:
		return sizeof(struct ft_load_tcp);
	default:
		return 0;
	}
}

struct ft_writer;
/* ft_writer_block for request columns, whose version depends on which columns there are. Their appender knows
 * their time range. */
int ft_writer_requests(struct ft_writer *w, uint8_t version, uint32_t count, struct ft_cover cover,
		       const void *payload, size_t bytes);

/* The layout of a request block's payload, shared by the appender and the decoder (requests.c, which has the
 * reasons). */

enum {
	VARINT_MAX = 9,
	VARINT_ZERO = 1, /* the varint of 0 */
	COLUMNS = 6,
	FURTHER_HEAD = sizeof(uint32_t), /* the length before an additional column */
};

/* The start of a request block's payload; the columns follow in this order. */
struct request_head {
	uint64_t base_ns;	 /* the first end is a difference to this */
	uint32_t bytes[COLUMNS]; /* end, duration, late, connection, op, status */
};

/* What follows the six columns: a length and a column, repeatedly. A column of zeros holds the place of a
 * missing one before another; later ones belong to newer writers. The last four are those of struct
 * ft_request_seen: a block has all of them or none. */
enum further_column {
	COLUMN_BEHIND,
	COLUMN_ARRIVAL,
	COLUMN_READ,
	COLUMN_WRITTEN,
	COLUMN_REQUEST_BYTES,
	COLUMN_ANSWER_BYTES,
	FURTHER_COLUMNS,
};
enum { SEEN_COLUMNS = FURTHER_COLUMNS - COLUMN_READ };

#endif

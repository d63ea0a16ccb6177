/* SPDX-License-Identifier: MIT */
/* What the writer and the reader share beyond format.h: which kinds are arrays of which struct. Private to
 * recording/. */
#ifndef FORKTAIL_LAYOUT_H
#define FORKTAIL_LAYOUT_H

#include <stddef.h>

#include "cover.h"
#include "format.h"

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
_Static_assert(sizeof(struct ft_connection) == 96, "connection");
_Static_assert(sizeof(struct ft_index_entry) == 40, "index entry");
_Static_assert(sizeof(struct ft_trailer) == 16, "trailer");
_Static_assert(sizeof(struct ft_cpu_sample) == 24, "cpu sample");
_Static_assert(sizeof(struct ft_counters) == 32, "counters");

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
	default:
		return 0;
	}
}

struct ft_writer;
/* ft_writer_block for request columns, whose version depends on which columns there are. Their appender knows
 * their time range. */
int ft_writer_requests(struct ft_writer *w, uint8_t version, uint32_t count, struct ft_cover cover,
		       const void *payload, size_t bytes);

#endif

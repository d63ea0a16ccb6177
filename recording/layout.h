/* SPDX-License-Identifier: MIT */
/* The bytes of a file, and how they are written: inside the library only. */
#ifndef FORKTAIL_RECORDING_LAYOUT_H
#define FORKTAIL_RECORDING_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

#include "recording/recording.h"

/* The time range of a block's records: the writer stores it in the index, and a reader computes it for a file
 * without one. Private to recording/. */

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

/* The layout of a request block's payload, shared by the appender (requests.c, which has the reasons) and the
 * decoder (requests.c). Private to recording/. */

enum {
	VARINT_MAX = 9,
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

/* A recording's file while it is written: complete blocks, one after the other. Private to recording/. For
 * one thread at a time, which may have to wait for the disk. Other threads may read `error` and `offset`. */

struct ft_file {
	int fd;
	int error;	    /* the first one; read by other threads */
	uint64_t offset;    /* end of the last complete block; read by other threads */
	uint64_t allocated; /* allocated up to here; UINT64_MAX: unknown */
	uint64_t limit;	    /* limit of the file's size: writing beyond it would raise SIGXFSZ */
	uint32_t blocks;
	uint32_t files;		      /* tried so far; read by other threads */
	bool goes_on;		      /* more files follow: an error ends with the next one */
	struct ft_index_entry *index; /* of the next entries: the previous index block, the blocks since */
	size_t index_count;
	ZSTD_CCtx *zstd;
	void *packed;
	size_t packed_room;
};

/* Initializes without a file. Must be freed in any case, also after ft_file_open. */
int ft_file_prepare(struct ft_file *f);

/* Creates the file, or replaces a recording there, like ft_writer_open. Must be freed in any case. */
int ft_file_open(struct ft_file *f, const char *path);

/* Ends the file like ft_file_end, and creates the next or the first one, which must not exist. An error is
 * the file's error until the next call; before the first file there is no error. */
int ft_file_next(struct ft_file *f, int dir, const char *name, const char *manifest, const char *summary);

/* Appends a block whose header has kind, count and the payload's size. The space for closing stays free after
 * it. `pack`: compress it if that saves space; without it, the header already contains the payload's hash.
 * `cover` is for request columns; for records it is computed here. Returns 0 or the file's first error. */
int ft_file_append(struct ft_file *f, struct ft_block_header *header, struct ft_cover cover,
		   const void *payload, bool pack);

/* Writes summary (or NULL), index and trailer, and closes. Returns the file's first error. */
int ft_file_end(struct ft_file *f, const char *summary);
void ft_file_free(struct ft_file *f);

static inline int ft_file_error(const struct ft_file *f)
{
	return __atomic_load_n(&f->error, __ATOMIC_RELAXED);
}

/* The output file of a recording. Private to recording/. */

/* Opens it, empty and locked, for reading and writing; or a negative errno as in ft_writer_open. */
int ft_output_open(const char *path);

/* Creates a new file in an open directory; also empty, locked and accessible to its owner only. */
int ft_output_create(int dir, const char *name);

/* Blocks waiting for the disk, so that recording never waits for it. Private to recording/. A separate thread
 * compresses and writes queued blocks. The queue has a limited size in bytes: when the disk stalls until it
 * is full, blocks of records are dropped and counted by kind, with their time range. A drop block replaces
 * them in the file. Blocks that other records refer to, and facts written once, would be missing in the whole
 * recording: such blocks have an additional half of the space. */

struct ft_queue;

/* Starts the thread, which owns the file from here on; it is running when this returns. Negative errno. */
int ft_queue_start(struct ft_queue **out, struct ft_file *file, size_t bytes);

/* Copies a block in the form of ft_file_append. Returns the file's error, if any. Never waits, except for
 * space once ft_queue_wait_for_space was called. */
int ft_queue_put(struct ft_queue *q, const struct ft_block_header *header, struct ft_cover cover,
		 const void *payload, bool pack);

/* Makes the thread call `job`, which may use the file, after everything queued so far is written. `renews`:
 * it clears the file's error, so that later blocks are not refused. -ENOMEM: it is not called. */
int ft_queue_run(struct ft_queue *q, void (*job)(void *arg), void *arg, bool renews);

void ft_queue_wait_for_space(struct ft_queue *q);

/* Waits until everything is written, including drop blocks. */
void ft_queue_drain(struct ft_queue *q);

/* Records dropped so far. */
uint64_t ft_queue_lost(struct ft_queue *q);

/* Drains, ends the thread and frees; the caller owns the file again. Accepts NULL. */
void ft_queue_end(struct ft_queue *q);
#endif

/* SPDX-License-Identifier: MIT */
/* Writing and reading recordings. format.h defines the layout, docs/reference/recording-format.md explains
 * it. The recorder and the load generator append with the writer while time matters; the analysis uses the
 * reader. Functions return 0 (or a count) and a negative errno on failure. Nothing is printed here. */
#ifndef FORKTAIL_RECORDING_H
#define FORKTAIL_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- writing ---- */

struct ft_writer;

/* Creates `path`, or replaces a recording there, and writes `manifest` (a JSON object as text) as its first
 * block. A few kilobytes are reserved on disk, so that index and trailer still fit when it is full. Anything
 * else at `path` is left unchanged: -ELOOP a symbolic link, -EISDIR, -ENOTSUP another kind of file, -EACCES
 * another user's file, -EEXIST not a recording, -EWOULDBLOCK being written. */
int ft_writer_open(struct ft_writer **out, const char *path, const char *manifest);

/* The first of several files, one after the other: NAME in an open directory, which must not exist. An error
 * of one file ends with the next: until then records are dropped and counted. */
int ft_writer_open_first(struct ft_writer **out, int dir, const char *name, const char *manifest);

/* Continues in the next file: the current one ends with `summary`, index and trailer. With
 * ft_writer_background none of this blocks, and a failure is the writer's error until the next call. */
int ft_writer_next(struct ft_writer *w, int dir, const char *name, const char *manifest, const char *summary);

/* Calls `job` when everything so far is written, in the thread that waits for the disk. -ENOMEM: it is not
 * called. */
int ft_writer_then(struct ft_writer *w, void (*job)(void *arg), void *arg);

/* Number of files tried so far, including those that could not be created. */
uint32_t ft_writer_files(const struct ft_writer *w);

/* Why it failed, to follow "cannot write FILE: ". */
const char *ft_writer_why(int error);

/* Gives a file or directory to the user who called sudo. Does nothing without sudo. */
void ft_give_to_caller(int fd);

/* Buffers one fixed-size record of a kind that has a struct in format.h. Written when the kind's buffer is
 * full or at the next flush. -EINVAL for JSON and column kinds. Thread-safe, like all writer calls. */
int ft_writer_record(struct ft_writer *w, enum ft_block_kind kind, const void *record);

/* Writes one JSON object as a separate block, at once, after buffered records. */
int ft_writer_json(struct ft_writer *w, enum ft_block_kind kind, const char *json);

/* Writes `bytes` of payload as one block, at once. record_size 0: the payload is not an array. (The index
 * does not know the time of request columns written this way.) */
int ft_writer_block(struct ft_writer *w, enum ft_block_kind kind, uint32_t record_size, uint32_t count,
		    const void *payload, size_t bytes);

/* Writes buffered records. Call it at least once per second: it limits the loss of a kill -9. */
int ft_writer_flush(struct ft_writer *w);

/* The first error of any call (negative errno), or 0. After -ENOSPC the file ends at its last complete block,
 * every later write returns the same error, and close still writes the trailer. */
int ft_writer_error(const struct ft_writer *w);

/* From here on a thread of the writer compresses and writes, and only drain and close wait for the disk. Up
 * to `bytes` wait in memory, and half as much again of blocks that others refer to. Records that do not fit
 * are dropped and counted. A drop block (FT_DROP_DISK) contains their number by kind and their time range.
 * Errors are reported later than the calls that caused them. Negative errno: nothing changes then. */
int ft_writer_background(struct ft_writer *w, size_t bytes);

/* From here on calls wait for space instead of dropping: all further records may wait. */
void ft_writer_wait_for_space(struct ft_writer *w);

/* Waits until the file contains all written blocks, and drop blocks. Returns ft_writer_error()'s value. */
int ft_writer_drain(struct ft_writer *w);

/* Records dropped so far. */
uint64_t ft_writer_lost(struct ft_writer *w);

/* Bytes written so far; of several files, including this one. */
uint64_t ft_writer_bytes(const struct ft_writer *w);

/* Flushes, writes `summary` (JSON text, or NULL), index and trailer, closes and frees. Returns
 * ft_writer_error()'s value. */
int ft_writer_close(struct ft_writer *w, const char *summary);

/* ---- request log: append by column ---- */

enum { FT_REQUEST_BLOCK = 16384 }; /* maximum number of requests in one block */

/* One load thread's open block: columns of varints that ft_requests_flush writes as one block. Appends never
 * allocate. */
struct ft_requests {
	uint32_t count;
	uint64_t last_end_ns; /* ends are stored as differences, zigzag: they may decrease slightly */
	uint64_t base_ns;
	uint8_t *end, *duration, *late, *connection; /* next free byte of each varint column */
	uint8_t *columns;			     /* owns the memory of all columns */
	uint8_t *op, *status, *behind;
	uint8_t any_behind; /* 0: no request of the block has one, and the column is omitted */
	bool any_arrival;   /* likewise */
	uint8_t *arrival;   /* next free byte of that varint column */
	uint64_t first_ns;  /* the earliest intended_ns of the block */
	uint64_t latest_ns; /* the latest end_ns of those followed by an earlier one */
	bool any_seen;	    /* the block's requests were appended with what the server's kernel knows */
	uint8_t *seen[4];   /* next free byte of those varint columns */
};

/* What only the server's kernel knows of a request. */
struct ft_request_seen {
	uint64_t read_ns;    /* the serving thread's read of its last byte returned; 0: unknown */
	uint64_t written_ns; /* the write of its answer returned; 0: unknown */
	uint32_t request_bytes;
	uint32_t answer_bytes;
};

int ft_requests_init(struct ft_requests *r);
void ft_requests_free(struct ft_requests *r);
/* True when the block is full: flush before the next append. */
static inline bool ft_requests_full(const struct ft_requests *r)
{
	return r->count == FT_REQUEST_BLOCK;
}
/* Appends a request `times` times, 1 to FT_REQUEST_BLOCK - r->count. */
void ft_requests_append_equal(struct ft_requests *r, const struct ft_request *q, uint32_t times);
static inline void ft_requests_append(struct ft_requests *r, const struct ft_request *q)
{
	ft_requests_append_equal(r, q, 1);
}
/* Appends a request seen in the server's kernel. A block has either these or those of ft_requests_append. */
void ft_requests_append_seen(struct ft_requests *r, const struct ft_request *q,
			     const struct ft_request_seen *seen);
/* Writes the open block, if it is not empty, and clears it. */
int ft_requests_flush(struct ft_requests *r, struct ft_writer *w);

/* Where a decoder stores requests: arrays of FT_REQUEST_BLOCK entries each; NULL: not wanted. */
struct ft_request_columns {
	uint64_t *intended_ns, *start_ns, *end_ns;
	uint32_t *connection;
	uint8_t *op, *status;
	uint8_t *behind;      /* zeros if the block has no such column */
	uint64_t *arrival_ns; /* likewise; needs end_ns, too */
	uint64_t *read_ns;    /* zeros if the block has no such column; needs start_ns, too */
	uint64_t *written_ns; /* likewise; needs end_ns, too */
	uint32_t *request_bytes, *answer_bytes; /* likewise */
};
/* Whether a payload has the column of servers behind a proxy, that of arrivals, and those of struct
 * ft_request_seen. */
bool ft_requests_have_behind(const void *payload, size_t bytes);
bool ft_requests_have_arrivals(const void *payload, size_t bytes);
bool ft_requests_have_seen(const void *payload, size_t bytes);
/* Decodes one FT_BLOCK_REQUEST payload. Returns the number of requests, or -EBADMSG. */
int ft_requests_decode(const void *payload, size_t bytes, uint32_t count,
		       const struct ft_request_columns *out);

/* Only a request's duration, from due to end, and its op: half the work. Arrays as above; op may be NULL. */
int ft_requests_latencies(const void *payload, size_t bytes, uint32_t count, uint64_t *latency_ns,
			  uint8_t *op);

/* ---- reading ---- */

struct ft_reader;

struct ft_block {
	uint32_t kind;	      /* enum ft_block_kind; a newer writer may use more */
	uint32_t record_size; /* as the writer had it */
	uint32_t count;
	const void *payload; /* decompressed, 8-byte aligned, followed by a zero byte; valid until the next
				call on this reader */
	size_t bytes;
	uint64_t offset; /* of its header in the file */
};

/* Damage that a finished, intact file does not have. */
struct ft_damage {
	uint64_t bytes_skipped;	 /* bytes that belong to no complete block */
	uint32_t gaps;		 /* number of places with such bytes */
	uint32_t blocks_missing; /* according to sequence numbers before, between and after */
	bool no_trailer;	 /* killed, truncated, or still being written */
	bool bomb;		 /* the rest was not read: see FT_RAW_PER_STORED. It is in bytes_skipped */
};

/* Opens for reading. On failure *out is NULL and `error` contains one sentence for the user: missing file,
 * empty file, not a recording, written by a newer format. */
int ft_reader_open(struct ft_reader **out, const char *path, char *error, size_t error_size);
/* 1 and the next complete block in file order (without index and trailer), or 0 at the end. */
int ft_reader_next(struct ft_reader *r, struct ft_block *block);
/* The same for a file that is still being written: new blocks since the last call are found, and an
 * incomplete block at its end is read again by the next call. (The file must not be truncated meanwhile:
 * -ESTALE.) */
int ft_reader_follow(struct ft_reader *r, struct ft_block *block);
/* Whether its trailer was found: nothing follows it. */
bool ft_reader_sealed(const struct ft_reader *r);
/* Bytes of the file up to the last complete block that was read. */
uint64_t ft_reader_at(const struct ft_reader *r);
/* Copies record `i` of a block into `record` (record_size of this build's struct): shorter ones are filled
 * with zeros, longer ones truncated. */
void ft_block_record(const struct ft_block *block, uint32_t i, void *record, size_t size);
/* Complete once ft_reader_next has returned 0. */
void ft_reader_damage(const struct ft_reader *r, struct ft_damage *damage);
void ft_reader_close(struct ft_reader *r);

/* The position of a complete block, and its time range. */
struct ft_place {
	uint64_t offset; /* of its header */
	/* From the earliest begin to the latest end of its records, for requests from when they were due; at
	 * most 2^62, and the end is no earlier than the start, whatever the records contain. Both 0: a kind
	 * without time, a block without records or with invalid columns. */
	uint64_t start_ns, end_ns;
	uint32_t kind, count, stored_bytes, raw_bytes;
};

struct ft_places {
	struct ft_place *all;
	size_t count;
	struct ft_damage damage;
	bool indexed; /* from the index: no block was read, and damage inside blocks was not detected */
};

/* All complete blocks of the file, in order (without index and trailer): from its index if that can be
 * trusted and has times, otherwise every block is read once, and damage is counted like ft_reader_next()
 * does. `scan`: never from the index. `progress` may be NULL; it is called at intervals with the bytes done
 * and the total, and ends the call with -ECANCELED unless it returns 0. Returns 0, or a negative errno and
 * *out is empty. The position of ft_reader_next() doesn't change. */
int ft_reader_places(struct ft_reader *r, bool scan, struct ft_places *out,
		     int (*progress)(void *arg, uint64_t done, uint64_t all), void *arg);
void ft_places_free(struct ft_places *p);

/* Reads the block at a place: 1 and *block, valid until the next call on this reader; 0 if no complete block
 * of that kind and size is there: it is damaged, the file has changed, or the index was wrong. Any number of
 * readers may be open on one file, each for one thread. The position of ft_reader_next() doesn't change. */
int ft_reader_read(struct ft_reader *r, const struct ft_place *place, struct ft_block *block);

/* ---- clocks ---- */

uint64_t ft_now_ns(void); /* CLOCK_MONOTONIC */
/* Reads the three clocks several times and keeps the tightest reading. */
void ft_clock_read(struct ft_clock *c);
/* The kernel's boot id as text ("" if it can't be read). */
void ft_boot_id(char out[40]);
/* Identifies this process' CLOCK_MONOTONIC: equal texts, the same clock. The boot id, and in a time namespace
 * that shifts the clock, the offset: "BOOT+monotonic:86400.000000000", or if that can't be read the
 * namespace, "BOOT+time:[4026532001]". */
enum { FT_CLOCK_ID_BYTES = 96 };
void ft_clock_id(char out[FT_CLOCK_ID_BYTES]);

#ifdef __cplusplus
}
#endif
#endif

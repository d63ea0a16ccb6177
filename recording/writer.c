/* SPDX-License-Identifier: MIT */
/* Gathers records into blocks. They are appended to the file, in a separate thread if wanted. There is
 * a buffer per kind, because records of one kind compress well together and interleaved ones don't. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "layout.h"
#include "recording/recording.h"

/* The output file of a recording. */

/* Opens it, empty and locked, for reading and writing; or a negative errno as in ft_writer_open. *moved: an
 * earlier recording there has another name now. */
static int ft_output_open(const char *path, bool *moved);

/* Creates a new file in an open directory; also empty, locked and accessible to its owner only. */
static int ft_output_create(int dir, const char *name);

/* A recording's file while it is written: complete blocks, one after the other. For
 * one thread at a time, which may have to wait for the disk. Other threads may read `error` and `offset`. */

struct ft_file {
	int fd;
	int error;	    /* the first one; read by other threads */
	uint64_t offset;    /* end of the last complete block; read by other threads */
	uint64_t allocated; /* allocated up to here; UINT64_MAX: unknown */
	uint64_t limit;	    /* limit of the file's size: writing beyond it would raise SIGXFSZ */
	uint32_t blocks;
	uint32_t files;		      /* tried so far; read by other threads */
	bool moved;		      /* an earlier recording at its path */
	bool goes_on;		      /* more files follow: an error ends with the next one */
	struct ft_index_entry *index; /* of the next entries: the previous index block, the blocks since */
	size_t index_count;
	ZSTD_CCtx *zstd;
	void *packed;
	size_t packed_room;
};

/* Initializes without a file. Must be freed in any case, also after ft_file_open. */
static int ft_file_prepare(struct ft_file *f);

/* Creates the file, or replaces a recording there, like ft_writer_open. Must be freed in any case. */
static int ft_file_open(struct ft_file *f, const char *path);

/* Ends the file like ft_file_end, and creates the next or the first one, which must not exist. An error is
 * the file's error until the next call; before the first file there is no error. */
static int ft_file_next(struct ft_file *f, int dir, const char *name, const char *manifest,
			const char *summary);

/* Appends a block whose header has kind, count and the payload's size. The space for closing stays free after
 * it. `pack`: compress it if that saves space; without it, the header already contains the payload's hash.
 * `cover` is for request columns; for records it is computed here. Returns 0 or the file's first error. */
static int ft_file_append(struct ft_file *f, struct ft_block_header *header, struct ft_cover cover,
			  const void *payload, bool pack);

/* Writes summary (or NULL), index and trailer, and closes. Returns the file's first error. */
static int ft_file_end(struct ft_file *f, const char *summary);
static void ft_file_free(struct ft_file *f);

static inline int ft_file_error(const struct ft_file *f)
{
	return __atomic_load_n(&f->error, __ATOMIC_RELAXED);
}

/* Blocks waiting for the disk, so that recording never waits for it. A separate thread
 * compresses and writes queued blocks. The queue has a limited size in bytes: when the disk stalls until it
 * is full, blocks of records are dropped and counted by kind, with their time range. A drop block replaces
 * them in the file. Blocks that other records refer to, and facts written once, would be missing in the whole
 * recording: such blocks have an additional half of the space. */

struct ft_queue;

/* Starts the thread, which owns the file from here on; it is running when this returns. Negative errno. */
static int ft_queue_start(struct ft_queue **out, struct ft_file *file, size_t bytes);

/* Copies a block in the form of ft_file_append. Returns the file's error, if any. Never waits, except for
 * space once ft_queue_wait_for_space was called. */
static int ft_queue_put(struct ft_queue *q, const struct ft_block_header *header, struct ft_cover cover,
			const void *payload, bool pack);

/* Makes the thread call `job`, which may use the file, after everything queued so far is written. `renews`:
 * it clears the file's error, so that later blocks are not refused. -ENOMEM: it is not called. */
static int ft_queue_run(struct ft_queue *q, void (*job)(void *arg), void *arg, bool renews);

static void ft_queue_wait_for_space(struct ft_queue *q);

/* Waits until everything is written, including drop blocks. */
static void ft_queue_drain(struct ft_queue *q);

/* Records dropped so far. */
static uint64_t ft_queue_lost(struct ft_queue *q);

/* Drains, ends the thread and frees; the caller owns the file again. Accepts NULL. */
static void ft_queue_end(struct ft_queue *q);

enum { BUFFER_BYTES = 64 << 10 };

struct buffer {
	uint8_t *bytes;
	uint32_t record_size, count, room; /* room: in records */
};

struct ft_writer {
	pthread_mutex_t lock; /* protects the buffers; without a queue also the file */
	struct ft_file file;
	struct ft_queue *queue; /* NULL: the calling thread waits for the disk */
	struct buffer buffers[FT_BLOCK_KINDS];
};

/* Whether nothing more is written: in a recording of one file, its first error is the end. */
static int ended(const struct ft_writer *w)
{
	return w->file.goes_on ? 0 : ft_writer_error(w);
}

/* Passes a block on. */
static int emit(struct ft_writer *w, struct ft_block_header *header, const void *payload)
{
	static const struct ft_cover cover_of_records = {0};

	return w->queue ? ft_queue_put(w->queue, header, cover_of_records, payload, true)
			: ft_file_append(&w->file, header, cover_of_records, payload, true);
}

static int flush_kind(struct ft_writer *w, unsigned kind)
{
	struct buffer *b = &w->buffers[kind];
	struct ft_block_header header = {
	    .kind = (uint16_t)kind,
	    .record_size = b->record_size,
	    .count = b->count,
	    .raw_bytes = b->count * b->record_size,
	};

	if (!b->count)
		return 0;
	b->count = 0;
	return emit(w, &header, b->bytes);
}

static int flush_all(struct ft_writer *w)
{
	for (unsigned kind = 0; kind < FT_BLOCK_KINDS && !ended(w); kind++)
		flush_kind(w, kind);
	return ended(w);
}

static void free_writer(struct ft_writer *w)
{
	for (unsigned kind = 0; kind < FT_BLOCK_KINDS; kind++)
		free(w->buffers[kind].bytes);
	ft_file_free(&w->file);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static int make_writer(struct ft_writer **out)
{
	struct ft_writer *w = calloc(1, sizeof(*w));

	*out = w;
	if (!w)
		return -ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	w->file.fd = -1;
	for (unsigned kind = 0; kind < FT_BLOCK_KINDS; kind++) {
		struct buffer *b = &w->buffers[kind];
		b->record_size = ft_record_size(kind);
		if (!b->record_size || kind == FT_BLOCK_INDEX || kind == FT_BLOCK_TRAILER)
			continue; /* only closing writes these two */
		b->room = BUFFER_BYTES / b->record_size;
		b->bytes = malloc(BUFFER_BYTES);
		if (!b->bytes)
			return -ENOMEM;
	}
	return 0;
}

/* The result so far, or nothing after an error. */
static int made(struct ft_writer **out, int rc)
{
	if (rc && *out) {
		free_writer(*out);
		*out = NULL;
	}
	return rc;
}

int ft_writer_open(struct ft_writer **out, const char *path, const char *manifest)
{
	int rc = make_writer(out);

	if (!rc)
		rc = ft_file_open(&(*out)->file, path);
	if (!rc)
		rc = ft_writer_json(*out, FT_BLOCK_MANIFEST, manifest);
	return made(out, rc);
}

bool ft_writer_moved(const struct ft_writer *w)
{
	return w->file.moved;
}

int ft_writer_open_first(struct ft_writer **out, int dir, const char *name, const char *manifest)
{
	int rc = make_writer(out);

	if (!rc)
		rc = ft_file_prepare(&(*out)->file);
	if (!rc)
		rc = ft_file_next(&(*out)->file, dir, name, manifest, NULL);
	if (!rc)
		(*out)->file.goes_on = true;
	return made(out, rc);
}

struct next_file {
	struct ft_writer *w;
	int dir;
	char *name, *manifest, *summary;
};

static void free_next(struct next_file *n)
{
	free(n->name);
	free(n->manifest);
	free(n->summary);
	free(n);
}

/* A job for the queue's thread. A failure is the file's error. */
static void begin_next(void *arg)
{
	struct next_file *n = arg;

	ft_file_next(&n->w->file, n->dir, n->name, n->manifest, n->summary);
	free_next(n);
}

int ft_writer_next(struct ft_writer *w, int dir, const char *name, const char *manifest, const char *summary)
{
	struct next_file *n = calloc(1, sizeof(*n));
	int rc = -ENOMEM;

	if (!n)
		return -ENOMEM;
	*n = (struct next_file){w, dir, strdup(name), strdup(manifest), strdup(summary)};
	pthread_mutex_lock(&w->lock);
	flush_all(w);
	if (n->name && n->manifest && n->summary)
		rc = w->queue ? ft_queue_run(w->queue, begin_next, n, true) : (begin_next(n), 0);
	pthread_mutex_unlock(&w->lock);
	if (rc)
		free_next(n);
	return rc;
}

int ft_writer_then(struct ft_writer *w, void (*job)(void *arg), void *arg)
{
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	if (w->queue)
		rc = ft_queue_run(w->queue, job, arg, false);
	else
		job(arg);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

uint32_t ft_writer_files(const struct ft_writer *w)
{
	return __atomic_load_n(&w->file.files, __ATOMIC_RELAXED);
}

int ft_writer_record(struct ft_writer *w, enum ft_block_kind kind, const void *record)
{
	struct buffer *b = &w->buffers[(unsigned)kind < FT_BLOCK_KINDS ? kind : 0];
	int rc;

	if (!b->room)
		return -EINVAL;
	pthread_mutex_lock(&w->lock);
	rc = ended(w);
	if (!rc) {
		memcpy(b->bytes + (size_t)b->count * b->record_size, record, b->record_size);
		/* A thread's record precedes its others, for who reads while this is written. */
		if (++b->count == b->room)
			rc = flush_kind(w, FT_BLOCK_THREAD);
		if (!rc && b->count == b->room)
			rc = flush_kind(w, kind);
	}
	pthread_mutex_unlock(&w->lock);
	return rc;
}

int ft_writer_json(struct ft_writer *w, enum ft_block_kind kind, const char *json)
{
	size_t bytes = strlen(json);
	struct ft_block_header header = {.kind = (uint16_t)kind, .count = 1, .raw_bytes = (uint32_t)bytes};
	int rc;

	if (bytes > FT_BLOCK_LIMIT)
		return -EMSGSIZE;
	pthread_mutex_lock(&w->lock);
	rc = flush_all(w);
	if (!rc)
		rc = emit(w, &header, json);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

int ft_writer_block(struct ft_writer *w, enum ft_block_kind kind, uint32_t record_size, uint32_t count,
		    const void *payload, size_t bytes)
{
	struct ft_block_header header = {
	    .kind = (uint16_t)kind,
	    .record_size = record_size,
	    .count = count,
	    .raw_bytes = (uint32_t)bytes,
	};
	int rc;

	if (kind == FT_BLOCK_REQUEST)
		return ft_writer_requests(w, 1, count, (struct ft_cover){0}, payload, bytes);
	if (bytes > FT_BLOCK_LIMIT)
		return -EMSGSIZE;
	if (record_size != 0 ? (uint64_t)record_size * count != bytes : ft_record_size(kind) != 0)
		return -EINVAL;
	pthread_mutex_lock(&w->lock);
	rc = emit(w, &header, payload);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

/* Request columns are stored uncompressed (requests.c explains why), so load threads compute their hashes in
 * parallel and wait for each other only while the kernel takes the bytes. */
int ft_writer_requests(struct ft_writer *w, uint8_t version, uint32_t count, struct ft_cover cover,
		       const void *payload, size_t bytes)
{
	struct ft_block_header header = {
	    .kind = FT_BLOCK_REQUEST,
	    .version = version,
	    .count = count,
	    .raw_bytes = (uint32_t)bytes,
	};
	int rc;

	if (bytes > FT_BLOCK_LIMIT)
		return -EMSGSIZE;
	header.payload_xxh32 = XXH32(payload, bytes, 0);
	pthread_mutex_lock(&w->lock);
	rc = w->queue ? ft_queue_put(w->queue, &header, cover, payload, false)
		      : ft_file_append(&w->file, &header, cover, payload, false);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

int ft_writer_flush(struct ft_writer *w)
{
	int rc;

	pthread_mutex_lock(&w->lock);
	rc = flush_all(w);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

int ft_writer_background(struct ft_writer *w, size_t bytes)
{
	int rc;

	pthread_mutex_lock(&w->lock);
	rc = w->queue ? 0 : ft_queue_start(&w->queue, &w->file, bytes);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

void ft_writer_wait_for_space(struct ft_writer *w)
{
	if (w->queue)
		ft_queue_wait_for_space(w->queue);
}

int ft_writer_drain(struct ft_writer *w)
{
	ft_writer_flush(w);
	if (w->queue)
		ft_queue_drain(w->queue);
	return ft_writer_error(w);
}

uint64_t ft_writer_lost(struct ft_writer *w)
{
	return w->queue ? ft_queue_lost(w->queue) : 0;
}

int ft_writer_error(const struct ft_writer *w)
{
	return ft_file_error(&w->file);
}

uint64_t ft_writer_bytes(const struct ft_writer *w)
{
	return __atomic_load_n(&w->file.offset, __ATOMIC_RELAXED);
}

int ft_writer_close(struct ft_writer *w, const char *summary)
{
	int rc;

	if (!w)
		return 0;
	ft_writer_wait_for_space(w);
	ft_writer_flush(w);
	ft_queue_end(w->queue);
	w->queue = NULL;
	rc = ft_file_end(&w->file, summary);
	free_writer(w);
	return rc;
}

/* Appends blocks to a recording's file. The design has two reasons. A recorder may be killed at any instant,
 * so a block is written with one call, and earlier blocks are never changed. A disk may fill up, so the
 * writer allocates space before it uses it: it allocates a piece ahead of the end and always keeps enough of
 * it free for closing. Without more space it stops at a complete block, and the space for index and trailer
 * is already allocated. */

enum {
	AHEAD_BYTES = 1 << 20, /* bytes allocated at a time, so that small blocks don't each ask the disk */
	SUMMARY_BYTES = 16 << 10, /* reserved for the summary when the disk is full */
	COMPRESS_MIN = 512,	  /* below it, a frame's own header outweighs the gain */
	/* Entries of an index block (160 KB), after which it is written: a recorder's memory doesn't grow
	 * with time. */
	INDEX_EACH = 4096,
	INDEX_ROOM = INDEX_EACH + 2, /* summary and trailer are written even after an index block failed */
};

static size_t block_bytes(size_t payload)
{
	return sizeof(struct ft_block_header) + payload;
}

static size_t index_bytes(size_t entries)
{
	return block_bytes(entries * sizeof(struct ft_index_entry));
}

/* Allocates `bytes` at the end and `keep` after them. */
static int make_room(struct ft_file *f, size_t bytes, size_t keep)
{
	uint64_t need = f->offset + bytes + keep;

	if (need > f->limit)
		return -EFBIG;
	if (need <= f->allocated)
		return 0;
	for (uint64_t ahead = AHEAD_BYTES;; ahead = 0) {
		int rc;
		do {
			rc = fallocate(f->fd, FALLOC_FL_KEEP_SIZE, (off_t)f->allocated,
				       (off_t)(need + ahead - f->allocated));
		} while (rc && errno == EINTR);
		if (!rc) {
			f->allocated = need + ahead;
			return 0;
		}
		if (errno == EOPNOTSUPP || errno == ENOSYS || errno == ENODEV || errno == ESPIPE) {
			f->allocated = UINT64_MAX; /* it is noticed when writing fails */
			return 0;
		}
		if (!ahead)
			return -errno;
	}
}

static int write_all(int fd, const struct ft_block_header *header, const void *payload, uint64_t offset)
{
	size_t done = 0, all = block_bytes(header->stored_bytes);

	while (done < all) {
		size_t head = done < sizeof(*header) ? sizeof(*header) - done : 0;
		size_t body = done < sizeof(*header) ? 0 : done - sizeof(*header);
		struct iovec parts[2] = {
		    {(uint8_t *)header + done, head},
		    {(uint8_t *)payload + body, header->stored_bytes - body},
		};
		ssize_t n = pwritev(fd, head ? parts : parts + 1, head ? 2 : 1, (off_t)(offset + done));
		if (n > 0)
			done += (size_t)n;
		else if (n == 0)
			return -EIO;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static void note_block(struct ft_file *f, const struct ft_block_header *header, struct ft_cover cover)
{
	if (header->kind == FT_BLOCK_INDEX)
		f->index_count = 0; /* the next one begins with this one */
	f->index[f->index_count++] = (struct ft_index_entry){
	    .offset = f->offset,
	    .kind = header->kind,
	    .count = header->count,
	    .start_ns = cover.start_ns,
	    .end_ns = cover.end_ns,
	    .stored_bytes = header->stored_bytes,
	    .raw_bytes = header->raw_bytes,
	};
}

/* Appends a block whose payload is ready to be stored, leaving `keep` bytes of space after it. */
static int append(struct ft_file *f, struct ft_block_header *header, struct ft_cover cover,
		  const void *payload, size_t keep)
{
	size_t bytes = block_bytes(header->stored_bytes);
	int rc = make_room(f, bytes, keep);

	if (rc)
		return rc;
	header->magic = FT_BLOCK_MAGIC;
	if (!header->version)
		header->version = 1;
	header->sequence = f->blocks;
	header->header_xxh32 = XXH32(header, offsetof(struct ft_block_header, header_xxh32), 0);
	rc = write_all(f->fd, header, payload, f->offset);
	/* The partial data of a failed call stays: closing overwrites it with its blocks, in space that is
	 * already allocated. Before that, or if it never happens, a reader skips it. */
	if (rc)
		return rc;
	note_block(f, header, cover);
	f->blocks++;
	__atomic_store_n(&f->offset, f->offset + bytes, __ATOMIC_RELAXED);
	return 0;
}

/* Compresses into f->packed if it saves at least a tenth, which is worth the reader's time to unpack. */
static const void *pack(struct ft_file *f, struct ft_block_header *header, const void *payload)
{
	size_t bound = ZSTD_compressBound(header->raw_bytes), n;

	header->stored_bytes = header->raw_bytes;
	if (header->raw_bytes < COMPRESS_MIN)
		return payload;
	if (bound > f->packed_room) {
		void *grown = realloc(f->packed, bound);
		if (!grown)
			return payload;
		f->packed = grown;
		f->packed_room = bound;
	}
	n = ZSTD_compressCCtx(f->zstd, f->packed, f->packed_room, payload, header->raw_bytes, 1);
	if (ZSTD_isError(n) || n > header->raw_bytes / 10 * 9)
		return payload;
	header->stored_bytes = (uint32_t)n;
	header->flags |= FT_BLOCK_ZSTD;
	return f->packed;
}

static int append_packed(struct ft_file *f, struct ft_block_header *header, const void *payload, size_t keep)
{
	const void *stored = pack(f, header, payload);

	header->payload_xxh32 = XXH32(stored, header->stored_bytes, 0);
	return append(f, header, ft_cover_records(header->kind, header->record_size, header->count, payload),
		      stored, keep);
}

/* Space that must stay free after every block except the closing ones: for summary, index and trailer, and
 * for an index block that may be due before them. */
static size_t closing_bytes(const struct ft_file *f)
{
	return SUMMARY_BYTES + index_bytes(f->index_count + 2) + index_bytes(2) +
	       block_bytes(sizeof(struct ft_trailer));
}

static int fail(struct ft_file *f, int rc)
{
	if (rc && !f->error)
		__atomic_store_n(&f->error, rc, __ATOMIC_RELAXED);
	return rc;
}

static int ft_file_prepare(struct ft_file *f)
{
	struct rlimit size;

	*f = (struct ft_file){.fd = -1, .limit = INT64_MAX};
	if (!getrlimit(RLIMIT_FSIZE, &size) && size.rlim_cur != RLIM_INFINITY)
		f->limit = size.rlim_cur;
	f->zstd = ZSTD_createCCtx();
	if (!f->zstd)
		return -ENOMEM;
	f->index = malloc(INDEX_ROOM * sizeof(*f->index));
	return f->index ? 0 : -ENOMEM;
}

static int ft_file_open(struct ft_file *f, const char *path)
{
	int rc = ft_file_prepare(f);

	if (rc)
		return rc;
	f->fd = ft_output_open(path, &f->moved);
	return f->fd < 0 ? f->fd : 0;
}

static int write_index(struct ft_file *f, size_t keep)
{
	struct ft_block_header header = {
	    .kind = FT_BLOCK_INDEX,
	    .record_size = sizeof(*f->index),
	    .count = (uint32_t)f->index_count,
	    .raw_bytes = (uint32_t)(f->index_count * sizeof(*f->index)),
	};

	return fail(f, append_packed(f, &header, f->index, keep));
}

static int ft_file_append(struct ft_file *f, struct ft_block_header *header, struct ft_cover cover,
			  const void *payload, bool pack)
{
	int rc;

	if (f->error)
		return f->error;
	header->stored_bytes = header->raw_bytes;
	rc = fail(f, pack ? append_packed(f, header, payload, closing_bytes(f))
			  : append(f, header, cover, payload, closing_bytes(f)));
	if (!rc && f->index_count >= INDEX_EACH)
		rc = write_index(f, SUMMARY_BYTES + index_bytes(2) + block_bytes(sizeof(struct ft_trailer)));
	return rc;
}

/* The closing blocks are written in spite of an earlier error: their space was reserved. If one of them
 * fails, the file stays readable, and the next one is still tried. */
static void write_end(struct ft_file *f, const char *summary)
{
	size_t trailer_bytes = block_bytes(sizeof(struct ft_trailer));
	struct ft_trailer trailer = {0};
	struct ft_block_header header;

	if (summary && strlen(summary) <= FT_BLOCK_LIMIT) {
		header = (struct ft_block_header){
		    .kind = FT_BLOCK_SUMMARY, .count = 1, .raw_bytes = (uint32_t)strlen(summary)};
		fail(f, append_packed(f, &header, summary, index_bytes(f->index_count + 1) + trailer_bytes));
	}
	trailer.index_offset = f->offset;
	if (write_index(f, trailer_bytes))
		trailer.index_offset = 0;
	trailer.blocks = f->blocks;
	header = (struct ft_block_header){
	    .kind = FT_BLOCK_TRAILER,
	    .record_size = sizeof(trailer),
	    .count = 1,
	    .raw_bytes = sizeof(trailer),
	};
	fail(f, append_packed(f, &header, &trailer, 0));
}

static int ft_file_end(struct ft_file *f, const char *summary)
{
	if (f->fd < 0)
		return f->error;
	write_end(f, summary);
	/* Frees what was allocated ahead. A failure costs a megabyte of disk, not the recording. */
	if (ftruncate(f->fd, (off_t)f->offset)) {
	}
	/* Network file systems report here what write() could not. */
	if (close(f->fd) && errno != EINTR)
		fail(f, -errno);
	f->fd = -1;
	return f->error;
}

static void begin_file(struct ft_file *f, int fd)
{
	f->fd = fd < 0 ? -1 : fd;
	f->allocated = 0;
	f->blocks = 0;
	f->index_count = 0;
	__atomic_store_n(&f->offset, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&f->error, fd < 0 ? fd : 0, __ATOMIC_RELAXED);
}

static int ft_file_next(struct ft_file *f, int dir, const char *name, const char *manifest,
			const char *summary)
{
	struct ft_block_header header = {
	    .kind = FT_BLOCK_MANIFEST, .count = 1, .raw_bytes = (uint32_t)strlen(manifest)};
	int rc;

	if (f->fd >= 0)
		ft_file_end(f, summary);
	begin_file(f, ft_output_create(dir, name));
	rc = f->error ? f->error : ft_file_append(f, &header, (struct ft_cover){0}, manifest, true);
	__atomic_store_n(&f->files, f->files + 1, __ATOMIC_RELAXED);
	if (!rc)
		return 0;
	/* A file without its first block is useless. */
	if (f->fd >= 0) {
		close(f->fd);
		unlinkat(dir, name, 0);
		f->fd = -1;
	}
	return rc;
}

static void ft_file_free(struct ft_file *f)
{
	free(f->index);
	free(f->packed);
	ZSTD_freeCCtx(f->zstd);
	if (f->fd >= 0)
		close(f->fd);
	*f = (struct ft_file){.fd = -1};
}

/* Opens the output file of a recording. The recorder runs as root, and other users may be able to write to
 * the directory. So links are not followed, a file is truncated only if it is known to be the caller's
 * recording, and new files are readable by their owner only: recordings contain command lines, addresses and
 * names. */

enum { LOCK_TRIES = 1000 };

/* Reads the number that sudo left in the environment. */
static bool number_of(const char *variable, unsigned long *number)
{
	const char *text = getenv(variable);
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoul(text, &end, 10);
	return !errno && !*end && *number < UINT32_MAX;
}

/* The user who called sudo; false: none. Only root can give files away, so another user gains nothing by
 * setting the variables. */
static bool caller(uid_t *uid, gid_t *gid)
{
	unsigned long user, group;

	if (geteuid() != 0 || !number_of("SUDO_UID", &user) || !number_of("SUDO_GID", &group))
		return false;
	*uid = (uid_t)user;
	*gid = (gid_t)group;
	return true;
}

void ft_give_to_caller(int fd)
{
	uid_t uid;
	gid_t gid;

	/* Where it fails, as on a file system without owners, the file stays root's: nothing is lost. */
	if (caller(&uid, &gid) && fchown(fd, uid, gid)) {
	}
}

static bool is_mine(const struct stat *st)
{
	uid_t uid;
	gid_t gid;

	return st->st_uid == geteuid() || (caller(&uid, &gid) && st->st_uid == uid);
}

/* Opens an existing file after checking the file itself, because its name may refer to another one a moment
 * later. A device or a FIFO isn't opened at all. */
static int open_existing(const char *path)
{
	struct stat st;
	char self[48];
	int fd, found = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (found < 0)
		return -errno;
	if (fstat(found, &st))
		fd = -errno;
	else if (S_ISLNK(st.st_mode))
		fd = -ELOOP;
	else if (S_ISDIR(st.st_mode))
		fd = -EISDIR;
	else if (!S_ISREG(st.st_mode))
		fd = -ENOTSUP;
	else if (!is_mine(&st))
		fd = -EACCES;
	else if (st.st_nlink > 1)
		fd = -EMLINK;
	else {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", found);
		fd = open(self, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	}
	close(found);
	return fd;
}

/* Whether it is empty or begins like a recording. */
static bool is_recording(int fd)
{
	uint32_t magic = 0;
	ssize_t n = pread(fd, &magic, sizeof(magic), 0);

	return n == 0 || (n == sizeof(magic) && magic == FT_BLOCK_MAGIC);
}

/* Renames a recording to PATH.old, as perf record does, so that a command that is given twice loses nothing.
 * What is there is replaced only if it is a recording too. */
static int move_away(const char *path)
{
	char *old;
	int rc = 0, fd;

	if (asprintf(&old, "%s.old", path) < 0)
		return -ENOMEM;
	fd = open_existing(old);
	if (fd >= 0 ? !is_recording(fd) : fd != -ENOENT)
		rc = -ENOTEMPTY;
	else if (rename(path, old))
		rc = -errno;
	if (fd >= 0)
		close(fd);
	free(old);
	return rc;
}

/* Takes what is at the path. 0: `fd` is of an empty file, which can be written; 1: the recording there has
 * another name now. */
static int take(int fd, const char *path)
{
	struct stat st;

	/* Some network file systems have no locks. */
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return -EWOULDBLOCK;
	if (!is_recording(fd))
		return -EEXIST;
	if (fstat(fd, &st))
		return -errno;
	if (st.st_size) {
		const int rc = move_away(path);

		return rc ? rc : 1;
	}
	if (fchmod(fd, 0600))
		return -errno;
	ft_give_to_caller(fd);
	return 0;
}

static int ft_output_open(const char *path, bool *moved)
{
	int fd, rc;

	*moved = false;
	for (;;) {
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		fd = fd < 0 ? -errno : fd;
		if (fd == -EEXIST)
			fd = open_existing(path);
		if (fd == -ENOENT && access(path, F_OK) == 0)
			continue; /* it was deleted in between, and exists again */
		if (fd < 0)
			return fd;
		rc = take(fd, path);
		if (!rc)
			return fd;
		close(fd);
		if (rc < 0)
			return rc;
		*moved = true;
	}
}

static int ft_output_create(int dir, const char *name)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	/* A reader that checks whether the file is being written has the lock for a moment. A file that is
	 * new has no other writer, so it is written in any case. */
	for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK && tries < LOCK_TRIES;
	     tries++)
		nanosleep(&pause, NULL);
	return fd;
}

const char *ft_writer_why(int error)
{
	switch (error) {
	case -ELOOP:
		return "it is a symbolic link, and those are not followed";
	case -EMLINK:
		return "it has more names than this one (hard links)";
	case -ENOTSUP:
		return "it is not a regular file";
	case -EEXIST:
		return "it contains something other than a recording and was not changed";
	case -ENOTEMPTY:
		return "the earlier recording cannot be renamed to *.old: something else has that name";
	case -EWOULDBLOCK:
		return "another recording is being written to it";
	case -EACCES:
		return "it belongs to another user, or its directory is not writable";
	default:
		return strerror(-error);
	}
}

/* A list of copied blocks under one lock, which is never held during disk writes. */

struct queued {
	struct queued *next;
	struct ft_block_header header;
	struct ft_cover cover;
	bool pack, renews;
	void (*job)(void *arg); /* NULL: a block */
	void *arg;
	uint8_t payload[];
};

/* Dropped records of a kind since the last block that was not dropped. */
struct lost {
	uint64_t count, start_ns, end_ns;
};

struct ft_queue {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t filled, written;
	struct ft_file *file;
	struct queued *first, **last;
	size_t bytes; /* queued or being written */
	size_t limit;
	struct lost lost[FT_BLOCK_KINDS];
	uint64_t all_lost;
	uint32_t renewals; /* queued: the file's error does not apply to blocks after it */
	bool begun, waits_for_space, ending;
};

/* A block's size in memory; for a job the header is empty. */
static size_t room_of(const struct ft_block_header *header)
{
	return sizeof(struct queued) + header->raw_bytes;
}

/* Blocks that other records depend on. There are too few of them to fill the queue. */
static bool is_vital(const struct ft_block_header *header)
{
	return !header->record_size || header->kind == FT_BLOCK_THREAD || header->kind == FT_BLOCK_DROP ||
	       header->kind == FT_BLOCK_CLOCK;
}

static bool has_room(const struct ft_queue *q, const struct ft_block_header *header)
{
	size_t limit = q->limit + (is_vital(header) ? q->limit / 2 : 0);

	return q->bytes == 0 || q->bytes + room_of(header) <= limit;
}

static void append_block(struct ft_queue *q, struct queued *b)
{
	*q->last = b;
	q->last = &b->next;
	q->bytes += room_of(&b->header);
	pthread_cond_signal(&q->filled);
}

/* Appends a block. False: out of memory. */
static bool add(struct ft_queue *q, const struct ft_block_header *header, struct ft_cover cover,
		const void *payload, bool pack)
{
	struct queued *b = malloc(room_of(header));

	if (!b)
		return false;
	*b = (struct queued){.header = *header, .cover = cover, .pack = pack};
	memcpy(b->payload, payload, header->raw_bytes);
	append_block(q, b);
	return true;
}

/* From when on records are missing: records that have a duration begin with their begin. A thread's begin may
 * be long ago and does not show when its other records are missing. */
static uint64_t earliest_ns(const struct ft_block_header *header, const void *payload, uint64_t now_ns)
{
	uint64_t earliest = now_ns, start;

	if (header->record_size < sizeof(start) || header->kind == FT_BLOCK_THREAD)
		return now_ns;
	for (uint32_t i = 0; i < header->count; i++) {
		memcpy(&start, (const uint8_t *)payload + (size_t)i * header->record_size, sizeof(start));
		earliest = start < earliest ? start : earliest;
	}
	return earliest;
}

static void lose(struct ft_queue *q, const struct ft_block_header *header, const void *payload)
{
	struct lost *l = &q->lost[header->kind < FT_BLOCK_KINDS ? header->kind : 0];
	uint64_t now_ns = ft_now_ns(), start_ns = earliest_ns(header, payload, now_ns);

	if (!l->count || start_ns < l->start_ns)
		l->start_ns = start_ns;
	l->end_ns = now_ns;
	l->count += header->count;
	q->all_lost += header->count;
}

/* Appends a block for dropped records, if there are any. They stay counted without memory. */
static void add_lost(struct ft_queue *q)
{
	struct ft_drop drops[FT_BLOCK_KINDS];
	struct ft_block_header header = {.kind = FT_BLOCK_DROP, .record_size = sizeof(drops[0])};

	for (uint32_t kind = 0; kind < FT_BLOCK_KINDS; kind++) {
		const struct lost *l = &q->lost[kind];
		if (l->count)
			drops[header.count++] = (struct ft_drop){.start_ns = l->start_ns,
								 .end_ns = l->end_ns,
								 .count = l->count,
								 .source = FT_DROP_DISK,
								 .detail = kind};
	}
	header.raw_bytes = header.count * header.record_size;
	if (header.count && add(q, &header, (struct ft_cover){0}, drops, true))
		memset(q->lost, 0, sizeof(q->lost));
}

static int ft_queue_put(struct ft_queue *q, const struct ft_block_header *header, struct ft_cover cover,
			const void *payload, bool pack)
{
	int rc = ft_file_error(q->file);

	if (rc && !q->file->goes_on)
		return rc;
	pthread_mutex_lock(&q->lock);
	if (rc && !q->renewals) {
		lose(q, header, payload);
		pthread_mutex_unlock(&q->lock);
		return rc;
	}
	while (q->waits_for_space && !has_room(q, header))
		pthread_cond_wait(&q->written, &q->lock);
	if (has_room(q, header)) {
		/* Vital blocks continue while others are dropped: one drop block for each of them would only
		 * fill the queue. */
		if (!is_vital(header))
			add_lost(q);
		if (!add(q, header, cover, payload, pack))
			lose(q, header, payload);
	} else {
		lose(q, header, payload);
	}
	pthread_mutex_unlock(&q->lock);
	return 0;
}

static int ft_queue_run(struct ft_queue *q, void (*job)(void *arg), void *arg, bool renews)
{
	struct queued *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->job = job;
	b->arg = arg;
	b->renews = renews;
	pthread_mutex_lock(&q->lock);
	q->renewals += renews;
	append_block(q, b);
	pthread_mutex_unlock(&q->lock);
	return 0;
}

static struct queued *take_first(struct ft_queue *q)
{
	struct queued *b = q->first;

	if (b) {
		q->first = b->next;
		q->last = q->first ? q->last : &q->first;
	}
	return b;
}

static void *write_blocks(void *arg)
{
	struct ft_queue *q = arg;

	pthread_setname_np(pthread_self(), "block-writer");
	pthread_mutex_lock(&q->lock);
	q->begun = true;
	pthread_cond_broadcast(&q->written);
	while (q->first || !q->ending) {
		struct queued *b = take_first(q);
		if (!b) {
			pthread_cond_wait(&q->filled, &q->lock);
			continue;
		}
		int rc = 0;
		pthread_mutex_unlock(&q->lock);
		if (b->job)
			b->job(b->arg);
		else
			rc = ft_file_append(q->file, &b->header, b->cover, b->payload, b->pack);
		pthread_mutex_lock(&q->lock);
		/* An error stays with the file. If no file follows, it applies to all later blocks. */
		if (rc && q->file->goes_on)
			lose(q, &b->header, b->payload);
		q->renewals -= b->renews;
		q->bytes -= room_of(&b->header);
		free(b);
		pthread_cond_broadcast(&q->written);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

/* Signals are for other threads, except those caused by this thread's own code: blocking them would be
 * fatal. */
static int start_thread(struct ft_queue *q)
{
	static const int own[] = {SIGSYS, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		sigdelset(&all, own[i]);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&q->thread, NULL, write_blocks, q);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static void free_queue(struct ft_queue *q)
{
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->filled);
	pthread_cond_destroy(&q->written);
	free(q);
}

static int ft_queue_start(struct ft_queue **out, struct ft_file *file, size_t bytes)
{
	struct ft_queue *q = calloc(1, sizeof(*q));
	int rc;

	*out = NULL;
	if (!q)
		return -ENOMEM;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->filled, NULL);
	pthread_cond_init(&q->written, NULL);
	q->file = file;
	q->last = &q->first;
	q->limit = bytes;
	rc = start_thread(q);
	if (rc) {
		free_queue(q);
		return rc;
	}
	pthread_mutex_lock(&q->lock);
	while (!q->begun)
		pthread_cond_wait(&q->written, &q->lock);
	pthread_mutex_unlock(&q->lock);
	*out = q;
	return 0;
}

static void ft_queue_wait_for_space(struct ft_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->waits_for_space = true;
	pthread_mutex_unlock(&q->lock);
}

static void ft_queue_drain(struct ft_queue *q)
{
	pthread_mutex_lock(&q->lock);
	add_lost(q);
	while (q->bytes)
		pthread_cond_wait(&q->written, &q->lock);
	pthread_mutex_unlock(&q->lock);
}

static uint64_t ft_queue_lost(struct ft_queue *q)
{
	uint64_t lost;

	pthread_mutex_lock(&q->lock);
	lost = q->all_lost;
	pthread_mutex_unlock(&q->lock);
	return lost;
}

static void ft_queue_end(struct ft_queue *q)
{
	if (!q)
		return;
	ft_queue_drain(q);
	pthread_mutex_lock(&q->lock);
	q->ending = true;
	pthread_cond_signal(&q->filled);
	pthread_mutex_unlock(&q->lock);
	pthread_join(q->thread, NULL);
	free_queue(q);
}

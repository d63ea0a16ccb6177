/* SPDX-License-Identifier: MIT */
/* Appends blocks to a recording.
 *
 * Two things shape it. A recorder may be killed at any instant, so a block is written with one call and
 * nothing before it is ever touched again. And a disk may fill up, so the writer owns its space before
 * it uses it: it has the file system allocate a piece ahead of the end and always keeps free in it what
 * closing needs. When no more space is to be had it stops at a whole block, with room for index and
 * trailer already its own.
 *
 * Buffers are per kind, because records of one kind compress well together and interleaved ones don't.
 */
#include "recording.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include "layout.h"
#include "output.h"

enum {
	BUFFER_BYTES = 64 << 10,
	AHEAD_BYTES = 1 << 20,	  /* allocated at a time, so that small blocks don't each ask the disk */
	SUMMARY_BYTES = 16 << 10, /* kept for the summary when the disk is full */
	COMPRESS_MIN = 512,	  /* below it, a frame's own header eats the gain */
	KINDS = FT_BLOCK_TURN + 1,
};

struct buffer {
	uint8_t *bytes;
	uint32_t record_size, count, room; /* room: in records */
};

struct ft_writer {
	pthread_mutex_t lock;
	int fd;
	int error;	    /* the first; read without the lock */
	uint64_t offset;    /* end of the last whole block; read without the lock */
	uint64_t allocated; /* the disk has space for the file up to here; UINT64_MAX: it can't be told */
	uint64_t limit;	    /* of the file's size: writing beyond it would raise SIGXFSZ */
	uint32_t blocks;
	struct buffer buffers[KINDS];
	struct ft_index_entry *index;
	size_t index_count, index_room;
	ZSTD_CCtx *zstd;
	void *packed;
	size_t packed_room;
};

static size_t block_bytes(size_t payload)
{
	return sizeof(struct ft_block_header) + payload;
}

static size_t index_bytes(const struct ft_writer *w)
{
	return block_bytes((w->index_count + 2) * sizeof(struct ft_index_entry));
}

/* Makes the disk give space for `bytes` at the end and `keep` after them. */
static int make_room(struct ft_writer *w, size_t bytes, size_t keep)
{
	uint64_t need = w->offset + bytes + keep;

	if (need > w->limit)
		return -EFBIG;
	if (need <= w->allocated)
		return 0;
	for (uint64_t ahead = AHEAD_BYTES;; ahead = 0) {
		int rc;
		do {
			rc = fallocate(w->fd, FALLOC_FL_KEEP_SIZE, (off_t)w->allocated,
				       (off_t)(need + ahead - w->allocated));
		} while (rc && errno == EINTR);
		if (!rc) {
			w->allocated = need + ahead;
			return 0;
		}
		if (errno == EOPNOTSUPP || errno == ENOSYS || errno == ENODEV || errno == ESPIPE) {
			w->allocated = UINT64_MAX; /* it will be seen when writing fails */
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

static void note_block(struct ft_writer *w, const struct ft_block_header *header)
{
	if (w->index_count == w->index_room) {
		size_t room = w->index_room ? w->index_room * 2 : 1024;
		struct ft_index_entry *grown = NULL;
		if (room * sizeof(*grown) <= FT_BLOCK_LIMIT)
			grown = realloc(w->index, room * sizeof(*grown));
		if (!grown)
			return; /* the index is a convenience; one that covers the beginning is still right */
		w->index = grown;
		w->index_room = room;
	}
	w->index[w->index_count++] =
	    (struct ft_index_entry){.offset = w->offset, .kind = header->kind, .count = header->count};
}

/* Appends a block whose payload is ready to be stored, leaving `keep` bytes of space after it. */
static int append(struct ft_writer *w, struct ft_block_header *header, const void *payload, size_t keep)
{
	size_t bytes = block_bytes(header->stored_bytes);
	int rc = make_room(w, bytes, keep);

	if (rc)
		return rc;
	header->magic = FT_BLOCK_MAGIC;
	if (!header->version)
		header->version = 1;
	header->sequence = w->blocks;
	header->header_xxh32 = XXH32(header, offsetof(struct ft_block_header, header_xxh32), 0);
	rc = write_all(w->fd, header, payload, w->offset);
	/* What a failed call did write is left: closing puts its blocks in its place, on space that the disk
	 * has given already. Until then, and if that never comes, a reader skips it. */
	if (rc)
		return rc;
	note_block(w, header);
	w->blocks++;
	__atomic_store_n(&w->offset, w->offset + bytes, __ATOMIC_RELAXED);
	return 0;
}

/* Compresses into w->packed where that pays: a tenth is worth the reader's time to unpack. */
static const void *pack(struct ft_writer *w, struct ft_block_header *header, const void *payload)
{
	size_t bound = ZSTD_compressBound(header->raw_bytes), n;

	header->stored_bytes = header->raw_bytes;
	if (header->raw_bytes < COMPRESS_MIN)
		return payload;
	if (bound > w->packed_room) {
		void *grown = realloc(w->packed, bound);
		if (!grown)
			return payload;
		w->packed = grown;
		w->packed_room = bound;
	}
	n = ZSTD_compressCCtx(w->zstd, w->packed, w->packed_room, payload, header->raw_bytes, 1);
	if (ZSTD_isError(n) || n > header->raw_bytes / 10 * 9)
		return payload;
	header->stored_bytes = (uint32_t)n;
	header->flags |= FT_BLOCK_ZSTD;
	return w->packed;
}

static int append_packed(struct ft_writer *w, struct ft_block_header *header, const void *payload,
			 size_t keep)
{
	const void *stored = pack(w, header, payload);

	header->payload_xxh32 = XXH32(stored, header->stored_bytes, 0);
	return append(w, header, stored, keep);
}

/* What must stay free after any block but the closing ones. */
static size_t closing_bytes(const struct ft_writer *w)
{
	return SUMMARY_BYTES + index_bytes(w) + block_bytes(sizeof(struct ft_trailer));
}

static int fail(struct ft_writer *w, int rc)
{
	if (rc && !w->error)
		__atomic_store_n(&w->error, rc, __ATOMIC_RELAXED);
	return rc;
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
	return fail(w, append_packed(w, &header, b->bytes, closing_bytes(w)));
}

static int flush_all(struct ft_writer *w)
{
	for (unsigned kind = 0; kind < KINDS && !w->error; kind++)
		flush_kind(w, kind);
	return w->error;
}

static void free_writer(struct ft_writer *w)
{
	for (unsigned kind = 0; kind < KINDS; kind++)
		free(w->buffers[kind].bytes);
	free(w->index);
	free(w->packed);
	ZSTD_freeCCtx(w->zstd);
	if (w->fd >= 0)
		close(w->fd);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

int ft_writer_open(struct ft_writer **out, const char *path, const char *manifest)
{
	struct rlimit size;
	struct ft_writer *w = calloc(1, sizeof(*w));
	int rc = -ENOMEM;

	*out = NULL;
	if (!w)
		return -ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	w->fd = -1;
	w->limit = INT64_MAX;
	if (!getrlimit(RLIMIT_FSIZE, &size) && size.rlim_cur != RLIM_INFINITY)
		w->limit = size.rlim_cur;
	w->zstd = ZSTD_createCCtx();
	if (!w->zstd)
		goto failed;
	for (unsigned kind = 0; kind < KINDS; kind++) {
		struct buffer *b = &w->buffers[kind];
		b->record_size = ft_record_size(kind);
		if (!b->record_size || kind == FT_BLOCK_INDEX || kind == FT_BLOCK_TRAILER)
			continue; /* those two are written by closing only */
		b->room = BUFFER_BYTES / b->record_size;
		b->bytes = malloc(BUFFER_BYTES);
		if (!b->bytes)
			goto failed;
	}
	w->fd = ft_output_open(path);
	if (w->fd < 0) {
		rc = w->fd;
		goto failed;
	}
	rc = ft_writer_json(w, FT_BLOCK_MANIFEST, manifest);
	if (rc)
		goto failed;
	*out = w;
	return 0;
failed:
	free_writer(w);
	return rc;
}

int ft_writer_record(struct ft_writer *w, enum ft_block_kind kind, const void *record)
{
	struct buffer *b = &w->buffers[(unsigned)kind < KINDS ? kind : 0];
	int rc;

	if (!b->room)
		return -EINVAL;
	pthread_mutex_lock(&w->lock);
	if (!w->error) {
		memcpy(b->bytes + (size_t)b->count * b->record_size, record, b->record_size);
		if (++b->count == b->room)
			flush_kind(w, kind);
	}
	rc = w->error;
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
		rc = fail(w, append_packed(w, &header, json, closing_bytes(w)));
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
	    .stored_bytes = (uint32_t)bytes,
	};
	int rc;

	if (kind == FT_BLOCK_REQUEST)
		return ft_writer_requests(w, 1, count, payload, bytes);
	if (bytes > FT_BLOCK_LIMIT)
		return -EMSGSIZE;
	if (record_size != 0 ? (uint64_t)record_size * count != bytes : ft_record_size(kind) != 0)
		return -EINVAL;
	pthread_mutex_lock(&w->lock);
	rc = w->error;
	if (!rc)
		rc = fail(w, append_packed(w, &header, payload, closing_bytes(w)));
	pthread_mutex_unlock(&w->lock);
	return rc;
}

/* Request columns are stored as they are (requests.c says why), so load threads hash theirs side by side and
 * wait for each other only while the kernel takes the bytes. */
int ft_writer_requests(struct ft_writer *w, uint8_t version, uint32_t count, const void *payload,
		       size_t bytes)
{
	struct ft_block_header header = {
	    .kind = FT_BLOCK_REQUEST,
	    .version = version,
	    .count = count,
	    .raw_bytes = (uint32_t)bytes,
	    .stored_bytes = (uint32_t)bytes,
	};
	int rc;

	if (bytes > FT_BLOCK_LIMIT)
		return -EMSGSIZE;
	header.payload_xxh32 = XXH32(payload, bytes, 0);
	pthread_mutex_lock(&w->lock);
	rc = w->error;
	if (!rc)
		rc = fail(w, append(w, &header, payload, closing_bytes(w)));
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

int ft_writer_error(const struct ft_writer *w)
{
	return __atomic_load_n(&w->error, __ATOMIC_RELAXED);
}

uint64_t ft_writer_bytes(const struct ft_writer *w)
{
	return __atomic_load_n(&w->offset, __ATOMIC_RELAXED);
}

/* The closing blocks are written in spite of an earlier error: their space was kept. A block of theirs
 * that fails leaves the file whole and must not keep the next one from being tried. */
static void write_end(struct ft_writer *w, const char *summary)
{
	size_t trailer_bytes = block_bytes(sizeof(struct ft_trailer));
	struct ft_trailer trailer = {0};
	struct ft_block_header header;

	if (summary && strlen(summary) <= FT_BLOCK_LIMIT) {
		header = (struct ft_block_header){
		    .kind = FT_BLOCK_SUMMARY, .count = 1, .raw_bytes = (uint32_t)strlen(summary)};
		fail(w, append_packed(w, &header, summary, index_bytes(w) + trailer_bytes));
	}
	header = (struct ft_block_header){
	    .kind = FT_BLOCK_INDEX,
	    .record_size = sizeof(*w->index),
	    .count = (uint32_t)w->index_count,
	    .raw_bytes = (uint32_t)(w->index_count * sizeof(*w->index)),
	};
	trailer.index_offset = w->offset;
	if (fail(w, append_packed(w, &header, w->index, trailer_bytes)))
		trailer.index_offset = 0;
	trailer.blocks = w->blocks;
	header = (struct ft_block_header){
	    .kind = FT_BLOCK_TRAILER,
	    .record_size = sizeof(trailer),
	    .count = 1,
	    .raw_bytes = sizeof(trailer),
	};
	fail(w, append_packed(w, &header, &trailer, 0));
}

int ft_writer_close(struct ft_writer *w, const char *summary)
{
	int rc;

	if (!w)
		return 0;
	pthread_mutex_lock(&w->lock);
	flush_all(w);
	write_end(w, summary);
	/* Gives back what was allocated ahead. A failure costs a megabyte of disk, not the recording. */
	if (ftruncate(w->fd, (off_t)w->offset)) {
	}
	/* Network file systems report here what write() could not. */
	if (close(w->fd) && errno != EINTR)
		fail(w, -errno);
	w->fd = -1;
	rc = w->error;
	pthread_mutex_unlock(&w->lock);
	free_writer(w);
	return rc;
}

/* SPDX-License-Identifier: MIT */
/* Appends blocks to a recording's file. The design has two reasons. A recorder may be killed at any instant,
 * so a block is written with one call, and earlier blocks are never changed. A disk may fill up, so the
 * writer allocates space before it uses it: it allocates a piece ahead of the end and always keeps enough of
 * it free for closing. Without more space it stops at a complete block, and the space for index and trailer
 * is already allocated. */
#include "append.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

#include "layout.h"
#include "output.h"

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

int ft_file_prepare(struct ft_file *f)
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

int ft_file_open(struct ft_file *f, const char *path)
{
	int rc = ft_file_prepare(f);

	if (rc)
		return rc;
	f->fd = ft_output_open(path);
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

int ft_file_append(struct ft_file *f, struct ft_block_header *header, struct ft_cover cover,
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

int ft_file_end(struct ft_file *f, const char *summary)
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

int ft_file_next(struct ft_file *f, int dir, const char *name, const char *manifest, const char *summary)
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

void ft_file_free(struct ft_file *f)
{
	free(f->index);
	free(f->packed);
	ZSTD_freeCCtx(f->zstd);
	if (f->fd >= 0)
		close(f->fd);
	*f = (struct ft_file){.fd = -1};
}

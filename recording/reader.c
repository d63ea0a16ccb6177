/* SPDX-License-Identifier: MIT */
/* Reads a recording and trusts nothing in it. A block is valid if its header's hash, its lengths and its
 * payload's hash all agree. Otherwise the reader searches for the next magic number from one byte further on:
 * not from the end that the damaged block claims, because that would skip valid blocks if the file lost
 * bytes. It uses pread() instead of mmap(): a file that is truncated meanwhile must not end the process with
 * SIGBUS. */
#include "reading.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "layout.h"

/* One extra zero byte, so that JSON can be passed to code that needs a string. */
static int make_room(struct ft_bytes *b, size_t bytes)
{
	void *grown;

	if (bytes + 1 > b->room) {
		grown = realloc(b->data, bytes + 1);
		if (!grown)
			return -ENOMEM;
		b->data = grown;
		b->room = bytes + 1;
	}
	b->data[bytes] = 0;
	return 0;
}

/* Unreadable parts (a bad sector, a truncated file) read as zeros and then fail their hash. */
static void read_at(const struct ft_reader *r, void *to, size_t bytes, uint64_t offset)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = pread(r->fd, (uint8_t *)to + done, bytes - done, (off_t)(offset + done));
		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			break;
	}
	memset((uint8_t *)to + done, 0, bytes - done);
}

/* The first magic number at or after `at`; r->size without one. */
static uint64_t find_magic(struct ft_reader *r, uint64_t at)
{
	static const uint32_t magic = FT_BLOCK_MAGIC;

	while (at + sizeof(struct ft_block_header) <= r->size) {
		const uint8_t *from, *hit;
		size_t left;

		if (at < r->window_at || at + sizeof(magic) > r->window_at + r->window_bytes) {
			r->window_at = at;
			r->window_bytes =
			    r->size - at < FT_WINDOW_BYTES ? (size_t)(r->size - at) : FT_WINDOW_BYTES;
			read_at(r, r->window, r->window_bytes, at);
		}
		from = r->window + (at - r->window_at);
		left = r->window_bytes - (size_t)(at - r->window_at);
		hit = memmem(from, left, &magic, sizeof(magic));
		if (hit)
			return at + (uint64_t)(hit - from);
		at += left - (sizeof(magic) - 1);
	}
	return r->size;
}

static bool header_holds(struct ft_reader *r, const struct ft_block_header *h, uint64_t offset)
{
	if (h->magic != FT_BLOCK_MAGIC ||
	    h->header_xxh32 != XXH32(h, offsetof(struct ft_block_header, header_xxh32), 0))
		return false;
	if (h->version > FT_FORMAT_VERSION) {
		r->newer = h->version;
		return false;
	}
	if (h->flags & ~FT_BLOCK_ZSTD || h->stored_bytes > FT_BLOCK_LIMIT || h->raw_bytes > FT_BLOCK_LIMIT)
		return false;
	if (h->stored_bytes > r->size - offset - sizeof(*h))
		return false; /* cut */
	if (!(h->flags & FT_BLOCK_ZSTD) && h->stored_bytes != h->raw_bytes)
		return false;
	if (h->record_size)
		return (uint64_t)h->record_size * h->count == h->raw_bytes;
	return !ft_record_size(h->kind);
}

bool ft_reader_header(struct ft_reader *r, uint64_t offset, struct ft_block_header *h)
{
	if (offset > r->size || r->size - offset < sizeof(*h))
		return false;
	read_at(r, h, sizeof(*h), offset);
	return header_holds(r, h, offset);
}

int ft_reader_load(struct ft_reader *r, const struct ft_block_header *h, uint64_t offset)
{
	const uint8_t *payload;
	int rc = make_room(&r->stored, h->stored_bytes);

	if (rc)
		return rc;
	payload = r->stored.data;
	read_at(r, r->stored.data, h->stored_bytes, offset + sizeof(*h));
	if (XXH32(payload, h->stored_bytes, 0) != h->payload_xxh32) {
		r->walk.futile += h->stored_bytes;
		return 0;
	}
	if (h->flags & FT_BLOCK_ZSTD) {
		rc = make_room(&r->raw, h->raw_bytes);
		if (rc)
			return rc;
		payload = r->raw.data;
		if (ZSTD_decompressDCtx(r->zstd, r->raw.data, h->raw_bytes, r->stored.data,
					h->stored_bytes) != h->raw_bytes) {
			r->walk.futile += h->raw_bytes;
			return 0;
		}
	}
	r->block = (struct ft_block){
	    .kind = h->kind,
	    .record_size = h->record_size,
	    .count = h->count,
	    .payload = payload,
	    .bytes = h->raw_bytes,
	    .offset = offset,
	};
	return 1;
}

static void skip_to(struct ft_reader *r, uint64_t offset)
{
	if (offset == r->walk.at)
		return;
	r->walk.damage.bytes_skipped += offset - r->walk.at;
	r->walk.damage.gaps++;
	r->walk.at = offset;
}

static void count_missing(struct ft_reader *r, uint32_t sequence)
{
	uint32_t missing = sequence > r->walk.expected ? sequence - r->walk.expected : 0;

	if (missing > UINT32_MAX - r->walk.damage.blocks_missing)
		missing = UINT32_MAX - r->walk.damage.blocks_missing;
	r->walk.damage.blocks_missing += missing;
	r->walk.expected = sequence + 1;
}

int ft_reader_advance(struct ft_reader *r)
{
	uint64_t at = r->walk.at;

	while (r->size - at >= sizeof(struct ft_block_header)) {
		struct ft_block_header h;
		int rc = 0;

		if (ft_reader_header(r, at, &h)) {
			rc = ft_reader_load(r, &h, at);
			if (rc < 0)
				return rc;
		}
		if (rc) {
			skip_to(r, at);
			count_missing(r, h.sequence);
			r->walk.at += sizeof(h) + h.stored_bytes;
			r->walk.raw += h.raw_bytes;
			if (ft_is_bomb(r->walk.raw, r->walk.at)) {
				r->walk.damage.bomb = true;
				skip_to(r, r->size);
				return 0;
			}
			if (h.kind == FT_BLOCK_TRAILER)
				r->walk.damage.no_trailer = false;
			return 1;
		}
		/* A file of headers that all claim the same bytes would be hashed repeatedly. */
		at =
		    find_magic(r, at + (r->walk.futile > 4 * r->size + FT_BLOCK_LIMIT ? FT_WINDOW_BYTES : 1));
	}
	if (!r->growing)
		skip_to(r, r->size);
	return 0;
}

static int say(char *error, size_t size, int rc, const char *format, const char *path, const char *more)
{
	snprintf(error, size, format, path, more);
	return rc;
}

static int open_checked(struct ft_reader *r, const char *path, char *error, size_t error_size)
{
	struct stat st;
	char versions[64];
	uint32_t magic = 0;
	int rc;

	r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (r->fd < 0 || fstat(r->fd, &st))
		return say(error, error_size, -errno, "cannot read %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return say(error, error_size, -EINVAL, "%s is %s, not a recording", path,
			   S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
	if (st.st_size == 0)
		return say(error, error_size, -ENODATA, "%s is empty: %s", path,
			   "no data was written to it, or the disk was full");
	r->size = (uint64_t)st.st_size;
	r->walk = ft_walk_begin();
	r->zstd = ZSTD_createDCtx();
	rc = r->zstd ? ft_reader_advance(r) : -ENOMEM;
	if (rc < 0)
		return say(error, error_size, rc, "cannot read %s: %s", path, strerror(-rc));
	r->pending = rc == 1;
	if (rc == 1)
		return 0;
	if (r->newer) {
		snprintf(versions, sizeof(versions), "format %u; this version reads up to %u", r->newer,
			 FT_FORMAT_VERSION);
		return say(error, error_size, -EPROTONOSUPPORT,
			   "%s was written by a newer forktail (%s). Update forktail to read it", path,
			   versions);
	}
	read_at(r, &magic, sizeof(magic), 0);
	if (magic == FT_BLOCK_MAGIC)
		return say(error, error_size, -ENODATA, "%s contains no complete block: %s", path,
			   "it was truncated or damaged within the first block");
	return say(error, error_size, -EINVAL, "%s is not a recording%s", path, "");
}

int ft_reader_open(struct ft_reader **out, const char *path, char *error, size_t error_size)
{
	struct ft_reader *r = calloc(1, sizeof(*r));
	int rc;

	*out = NULL;
	if (!r)
		return say(error, error_size, -ENOMEM, "cannot read %s: %s", path, "out of memory");
	r->fd = -1;
	rc = open_checked(r, path, error, error_size);
	if (rc)
		ft_reader_close(r);
	else
		*out = r;
	return rc;
}

/* The block found when opening is read again: its memory is needed for another one. */
struct ft_walk ft_reader_leave(struct ft_reader *r)
{
	if (r->pending)
		r->walk = ft_walk_begin();
	r->pending = false;
	return r->walk;
}

int ft_reader_next(struct ft_reader *r, struct ft_block *block)
{
	do {
		int rc = r->pending ? 1 : ft_reader_advance(r);
		r->pending = false;
		if (rc <= 0)
			return rc;
	} while (r->block.kind == FT_BLOCK_INDEX || r->block.kind == FT_BLOCK_TRAILER);
	*block = r->block;
	return 1;
}

int ft_reader_follow(struct ft_reader *r, struct ft_block *block)
{
	struct stat st;

	if (fstat(r->fd, &st))
		return -errno;
	if ((uint64_t)st.st_size < r->walk.at)
		return -ESTALE;
	if (r->size != (uint64_t)st.st_size)
		r->window_bytes = 0;
	r->size = (uint64_t)st.st_size;
	do {
		uint64_t futile = r->walk.futile;
		int rc;

		r->growing = true;
		rc = r->pending ? 1 : ft_reader_advance(r);
		r->growing = false;
		r->pending = false;
		/* The same end is checked many times. */
		if (rc == 0)
			r->walk.futile = futile;
		if (rc <= 0)
			return rc;
	} while (r->block.kind == FT_BLOCK_INDEX || r->block.kind == FT_BLOCK_TRAILER);
	*block = r->block;
	return 1;
}

bool ft_reader_sealed(const struct ft_reader *r)
{
	return !r->walk.damage.no_trailer;
}

uint64_t ft_reader_at(const struct ft_reader *r)
{
	return r->walk.at;
}

void ft_block_record(const struct ft_block *block, uint32_t i, void *record, size_t size)
{
	size_t known = block->record_size < size ? block->record_size : size;

	if (i >= block->count)
		known = 0;
	if (known)
		memcpy(record, (const uint8_t *)block->payload + (size_t)i * block->record_size, known);
	memset((uint8_t *)record + known, 0, size - known);
}

void ft_reader_damage(const struct ft_reader *r, struct ft_damage *damage)
{
	*damage = r->walk.damage;
}

void ft_reader_close(struct ft_reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	ZSTD_freeDCtx(r->zstd);
	free(r->stored.data);
	free(r->raw.data);
	free(r);
}

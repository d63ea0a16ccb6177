/* SPDX-License-Identifier: MIT */
/* Reads a recording and trusts nothing in it. A block is valid if its header's hash, its lengths and its
 * payload's hash all agree. Otherwise the reader searches for the next magic number from one byte further on:
 * not from the end that the damaged block claims, because that would skip valid blocks if the file lost
 * bytes. It uses pread() instead of mmap(): a file that is truncated meanwhile must not end the process with
 * SIGBUS. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include "common/grow.h"
#include "layout.h"
#include "recording/recording.h"

/* Reading a recording block by block: shared by ft_reader_next and the table of a file's places. Private to
 * recording/. */

enum { FT_WINDOW_BYTES = 64 << 10 };

struct ft_bytes {
	uint8_t *data;
	size_t room;
};

/* A walk over the blocks of a file: its position, and the damage it found. */
struct ft_walk {
	uint64_t at;	   /* end of the last complete block */
	uint64_t futile;   /* bytes hashed or unpacked without success, to limit the work of a hostile file */
	uint64_t raw;	   /* bytes that blocks so far had when unpacked */
	uint32_t expected; /* sequence number */
	struct ft_damage damage;
};

struct ft_reader {
	int fd;
	uint64_t size; /* size when opened: of a file still being written, the part that existed */
	struct ft_walk walk;
	uint8_t newer; /* a version above ours that was found */
	bool growing;  /* an incomplete block at its end may become complete */
	bool pending;  /* the block found when opening was not returned yet */
	struct ft_block block;
	struct ft_bytes stored, raw;
	ZSTD_DCtx *zstd;
	uint64_t window_at;
	size_t window_bytes;
	uint8_t window[FT_WINDOW_BYTES];
};

/* Compressed bytes of a stranger may be a bomb: zstd packs 64 MB of equal records into 5.7 kB. Recordings of
 * busy, idle and stopped servers had up to 5 bytes per stored byte, and their blocks up to 9. What comes
 * after far more than that is not read. */
#define FT_RAW_FREE ((uint64_t)FT_BLOCK_LIMIT + (1 << 20)) /* a block of any size */
enum { FT_RAW_PER_STORED = 40 };
static inline bool ft_is_bomb(uint64_t raw, uint64_t stored)
{
	return raw > FT_RAW_FREE && raw / FT_RAW_PER_STORED > stored;
}

static inline struct ft_walk ft_walk_begin(void)
{
	return (struct ft_walk){.damage.no_trailer = true};
}

/* Finds the next complete block of any kind: 1 and r->block, which ends at r->walk.at; 0 at the end. */
static int ft_reader_advance(struct ft_reader *r);

/* Position of ft_reader_next, saved before the reader is used for something else. The caller restores r->walk
 * afterwards. */
static struct ft_walk ft_reader_leave(struct ft_reader *r);

/* Reads the header at an offset. False: there is no possible block. */
static bool ft_reader_header(struct ft_reader *r, uint64_t offset, struct ft_block_header *h);

/* Reads the payload after such a header. 1: the complete block is in r->block. 0: no complete block.
 * Negative: out of memory. */
static int ft_reader_load(struct ft_reader *r, const struct ft_block_header *h, uint64_t offset);

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

static bool ft_reader_header(struct ft_reader *r, uint64_t offset, struct ft_block_header *h)
{
	if (offset > r->size || r->size - offset < sizeof(*h))
		return false;
	read_at(r, h, sizeof(*h), offset);
	return header_holds(r, h, offset);
}

static int ft_reader_load(struct ft_reader *r, const struct ft_block_header *h, uint64_t offset)
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

static int ft_reader_advance(struct ft_reader *r)
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
static struct ft_walk ft_reader_leave(struct ft_reader *r)
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

/* The positions and time ranges of a file's blocks, so that a reader can read selected blocks in any order
 * and store nothing else. */

enum {
	PROGRESS_BYTES = 4 << 20, /* bytes read between two progress calls */
	SPOTS = 16,		  /* headers that are compared with the index */
};

static int add(struct ft_places *p, size_t *room, const struct ft_place *place)
{
	if (!grow(&p->all, room, p->count, sizeof(*p->all)))
		return -ENOMEM;
	p->all[p->count++] = *place;
	return 0;
}

static bool is_shown(uint32_t kind)
{
	return kind != FT_BLOCK_INDEX && kind != FT_BLOCK_TRAILER;
}

/* The place of the block that the reader has just found. */
static struct ft_place place_of(const struct ft_reader *r)
{
	const struct ft_block *b = &r->block;
	struct ft_cover c = b->kind == FT_BLOCK_REQUEST
				? ft_cover_requests(b->payload, b->bytes, b->count)
				: ft_cover_records(b->kind, b->record_size, b->count, b->payload);

	return (struct ft_place){
	    .offset = b->offset,
	    .start_ns = c.start_ns,
	    .end_ns = c.end_ns,
	    .kind = b->kind,
	    .count = b->count,
	    .stored_bytes = (uint32_t)(r->walk.at - b->offset - sizeof(struct ft_block_header)),
	    .raw_bytes = (uint32_t)b->bytes,
	};
}

/* ---- by the index ---- */

/* Reading an index, from its last block to its first. */
struct chain {
	struct ft_place *all; /* filled from its end: the places from `left` on are found */
	size_t left, total;
	size_t blocks;	      /* of the index itself */
	uint64_t end;	      /* of the next index block to read */
	struct ft_place next; /* that block: its position, and what is known of it */
};

static bool matches(const struct ft_block_header *h, const struct ft_place *place)
{
	return h->kind == place->kind && h->count == place->count && h->stored_bytes == place->stored_bytes &&
	       h->raw_bytes == place->raw_bytes;
}

static uint64_t end_of(const struct ft_place *place)
{
	return place->offset + sizeof(struct ft_block_header) + place->stored_bytes;
}

/* The trailer at the very end of a file, and its index block. */
static int open_chain(struct ft_reader *r, struct chain *c)
{
	struct ft_trailer trailer = {0};
	struct ft_block_header h;
	uint64_t at = r->size - sizeof(h) - sizeof(trailer);
	int rc;

	if (!ft_reader_header(r, at, &h) || h.kind != FT_BLOCK_TRAILER || h.stored_bytes != sizeof(trailer))
		return 0;
	rc = ft_reader_load(r, &h, at);
	if (rc <= 0)
		return rc;
	ft_block_record(&r->block, 0, &trailer, sizeof(trailer));
	if (trailer.blocks > r->size / sizeof(h) || !ft_reader_header(r, trailer.index_offset, &h))
		return 0;
	c->next = (struct ft_place){
	    .offset = trailer.index_offset,
	    .kind = FT_BLOCK_INDEX,
	    .count = h.count,
	    .stored_bytes = h.stored_bytes,
	    .raw_bytes = h.raw_bytes,
	};
	c->end = at;
	c->left = c->total = trailer.blocks;
	c->all = malloc((c->left + 1) * sizeof(*c->all));
	return c->all ? 1 : -ENOMEM;
}

/* Takes the entries of the index block in the reader. They must be consecutive blocks up to this one, so that
 * nothing of the file is missing or duplicated. False: they are not. */
static bool take_entries(const struct ft_block *index, struct chain *c)
{
	uint64_t end = index->offset;

	for (uint32_t i = index->count; i-- > 0;) {
		struct ft_index_entry e;
		struct ft_place p;

		ft_block_record(index, i, &e, sizeof(e));
		p = (struct ft_place){e.offset, e.start_ns,	e.end_ns,   e.kind,
				      e.count,	e.stored_bytes, e.raw_bytes};
		if (e.offset >= end || end_of(&p) != end || e.start_ns > e.end_ns ||
		    e.end_ns > FT_COVER_LIMIT_NS)
			return false;
		end = e.offset;
		if (!is_shown(e.kind)) {
			c->next = p;
			return i == 0 && e.kind == FT_BLOCK_INDEX;
		}
		if (!c->left)
			return false;
		c->all[--c->left] = p;
	}
	c->next = (struct ft_place){0};
	return end == 0;
}

/* 1: the chain is complete, and contains all blocks of the file. */
static int follow_chain(struct ft_reader *r, struct chain *c)
{
	struct ft_block_header h;
	int rc;

	do {
		if (end_of(&c->next) != c->end || !ft_reader_header(r, c->next.offset, &h) ||
		    !matches(&h, &c->next) || h.record_size < sizeof(struct ft_index_entry))
			return 0;
		rc = ft_reader_load(r, &h, c->next.offset);
		if (rc <= 0)
			return rc;
		if (!take_entries(&r->block, c))
			return 0;
		c->blocks++;
		c->end = end_of(&c->next);
	} while (c->next.kind == FT_BLOCK_INDEX);
	return c->left == c->blocks;
}

/* Checks some headers: an index of another file, or of an earlier version of this one, would differ. */
static bool spots_match(struct ft_reader *r, const struct ft_place *all, size_t count)
{
	for (size_t i = 0; i < SPOTS; i++) {
		const struct ft_place *place = &all[i * (count - 1) / (SPOTS - 1)];
		struct ft_block_header h;

		if (!ft_reader_header(r, place->offset, &h) || !matches(&h, place))
			return false;
	}
	return true;
}

static bool is_bomb(const struct ft_reader *r, const struct ft_place *all, size_t count)
{
	uint64_t raw = 0;

	for (size_t i = 0; i < count; i++)
		raw += all[i].raw_bytes;
	return ft_is_bomb(raw, r->size);
}

/* 1: the places come from the index. 0: it can't be trusted, or has no times. */
static int read_index(struct ft_reader *r, struct ft_places *p)
{
	struct chain c = {0};
	int rc = open_chain(r, &c);
	size_t count = 0;

	if (rc > 0)
		rc = follow_chain(r, &c);
	if (rc > 0) {
		/* The index blocks' own places stayed free. */
		count = c.total - c.blocks;
		memmove(c.all, c.all + c.blocks, count * sizeof(*c.all));
		rc = count > 0 && !is_bomb(r, c.all, count) && spots_match(r, c.all, count);
	}
	if (rc > 0)
		*p = (struct ft_places){.all = c.all, .count = count, .indexed = true};
	else
		free(c.all);
	return rc;
}

/* ---- by a scan ---- */

static int scan_file(struct ft_reader *r, struct ft_places *p,
		     int (*progress)(void *, uint64_t done, uint64_t all), void *arg)
{
	uint64_t next = PROGRESS_BYTES;
	size_t room = 0;
	int rc;

	r->walk = ft_walk_begin();
	while ((rc = ft_reader_advance(r)) > 0) {
		struct ft_place place;

		if (is_shown(r->block.kind)) {
			place = place_of(r);
			rc = add(p, &room, &place);
			if (rc)
				return rc;
		}
		if (!progress || r->walk.at < next)
			continue;
		next = r->walk.at + PROGRESS_BYTES;
		if (progress(arg, r->walk.at, r->size))
			return -ECANCELED;
	}
	p->damage = r->walk.damage;
	return rc;
}

int ft_reader_places(struct ft_reader *r, bool scan, struct ft_places *out,
		     int (*progress)(void *, uint64_t done, uint64_t all), void *arg)
{
	struct ft_walk walk = ft_reader_leave(r);
	int rc;

	*out = (struct ft_places){0};
	rc = scan ? 0 : read_index(r, out);
	if (!rc)
		rc = scan_file(r, out, progress, arg);
	r->walk = walk;
	if (rc < 0)
		ft_places_free(out);
	return rc < 0 ? rc : 0;
}

void ft_places_free(struct ft_places *p)
{
	free(p->all);
	*p = (struct ft_places){0};
}

int ft_reader_read(struct ft_reader *r, const struct ft_place *place, struct ft_block *block)
{
	struct ft_walk walk = ft_reader_leave(r);
	struct ft_block_header h;
	int rc = 0;

	if (ft_reader_header(r, place->offset, &h) && matches(&h, place))
		rc = ft_reader_load(r, &h, place->offset);
	r->walk = walk;
	if (rc > 0)
		*block = r->block;
	return rc;
}

/* Every kind of record has its times at fixed positions, so one loop serves all. */

/* Positions of a kind's times. A record of an older writer may lack some: those are 0, unknown. */
struct times {
	enum { TIMELESS = 0, BETWEEN, LASTING } form; /* the second time is an end, or a duration */
	uint16_t first, second;
};

#define TIMES(form, record, first, second)                                                                   \
	{                                                                                                    \
		form, offsetof(struct record, first), offsetof(struct record, second)                        \
	}

static const struct times times_of[FT_BLOCK_KINDS] = {
    [FT_BLOCK_THREAD] = TIMES(BETWEEN, ft_thread, start_ns, end_ns),
    [FT_BLOCK_SPAN] = TIMES(LASTING, ft_span, start_ns, duration_ns),
    [FT_BLOCK_OPEN] = TIMES(LASTING, ft_span, start_ns, duration_ns),
    [FT_BLOCK_TALLY] = TIMES(BETWEEN, ft_tally, start_ns, end_ns),
    [FT_BLOCK_IO] = TIMES(LASTING, ft_io, start_ns, duration_ns),
    [FT_BLOCK_WRITES] = TIMES(BETWEEN, ft_writes, start_ns, end_ns),
    [FT_BLOCK_CPU_SLICE] = TIMES(BETWEEN, ft_cpu_slice, start_ns, end_ns),
    [FT_BLOCK_LOOP] = TIMES(BETWEEN, ft_loop, t_ns, t_ns),
    [FT_BLOCK_SOCKET] = TIMES(BETWEEN, ft_socket, before_ns, seen_ns),
    [FT_BLOCK_SAMPLE] = TIMES(BETWEEN, ft_sample, t_ns, t_ns),
    [FT_BLOCK_CPU_SAMPLE] = TIMES(BETWEEN, ft_cpu_sample, t_ns, t_ns),
    [FT_BLOCK_COUNTERS] = TIMES(BETWEEN, ft_counters, t_ns, t_ns),
    [FT_BLOCK_TCP_EVENT] = TIMES(BETWEEN, ft_tcp_event, t_ns, t_ns),
    [FT_BLOCK_TCP_STATE] = TIMES(BETWEEN, ft_tcp_state, before_ns, t_ns),
    [FT_BLOCK_LOAD_TCP] = TIMES(BETWEEN, ft_load_tcp, before_ns, t_ns),
    [FT_BLOCK_DROP] = TIMES(BETWEEN, ft_drop, start_ns, end_ns),
    [FT_BLOCK_CLOCK] = TIMES(BETWEEN, ft_clock, monotonic_ns, monotonic_ns),
    [FT_BLOCK_PROBE] = TIMES(BETWEEN, ft_probe, sent_ns, received_ns),
    [FT_BLOCK_CONNECTION] = TIMES(BETWEEN, ft_connection, opened_ns, closed_ns),
};

static uint64_t time_at(const uint8_t *record, uint32_t record_size, uint32_t at)
{
	uint64_t t = 0;

	if (at + sizeof(t) <= record_size)
		memcpy(&t, record + at, sizeof(t));
	return t;
}

struct ft_cover ft_cover_records(uint32_t kind, uint32_t record_size, uint32_t count, const void *payload)
{
	struct times times = kind < FT_BLOCK_KINDS ? times_of[kind] : (struct times){0};
	const uint8_t *record = payload;
	uint64_t earliest = UINT64_MAX, latest = 0;

	if (times.form == TIMELESS || !record_size || !count)
		return (struct ft_cover){0};
	for (uint32_t i = 0; i < count; i++, record += record_size) {
		uint64_t start = time_at(record, record_size, times.first);
		uint64_t end = time_at(record, record_size, times.second);

		if (times.form == LASTING && __builtin_add_overflow(start, end, &end))
			end = UINT64_MAX;
		start = start ? start : end; /* 0: unknown, or still open */
		end = end > start ? end : start;
		earliest = start < earliest ? start : earliest;
		latest = end > latest ? end : latest;
	}
	return ft_cover_between(earliest, latest);
}

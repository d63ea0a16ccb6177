/* SPDX-License-Identifier: MIT */
/* The positions and time ranges of a file's blocks, so that a reader can read selected blocks in any order
 * and store nothing else. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cover.h"
#include "reading.h"

enum {
	PROGRESS_BYTES = 4 << 20, /* bytes read between two progress calls */
	SPOTS = 16,		  /* headers that are compared with the index */
};

static int add(struct ft_places *p, size_t *room, const struct ft_place *place)
{
	if (p->count == *room) {
		size_t more = *room ? *room * 2 : 256;
		struct ft_place *grown = realloc(p->all, more * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		p->all = grown;
		*room = more;
	}
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

/* SPDX-License-Identifier: MIT */
/* Where the blocks of a file lie and which time each covers, so that whoever reads takes what is needed, in
 * any order, and holds nothing else.
 */
#include <errno.h>
#include <stdlib.h>

#include "cover.h"
#include "reading.h"

enum { PROGRESS_BYTES = 4 << 20 }; /* read between two calls that tell of it */

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

	(void)scan;
	*out = (struct ft_places){0};
	rc = scan_file(r, out, progress, arg);
	r->walk = walk;
	if (rc)
		ft_places_free(out);
	return rc;
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

	if (ft_reader_header(r, place->offset, &h) && h.kind == place->kind && h.count == place->count &&
	    h.stored_bytes == place->stored_bytes && h.raw_bytes == place->raw_bytes)
		rc = ft_reader_load(r, &h, place->offset);
	r->walk = walk;
	if (rc > 0)
		*block = r->block;
	return rc;
}

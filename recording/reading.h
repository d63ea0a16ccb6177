/* SPDX-License-Identifier: MIT */
/* How a recording is read, block by block: what ft_reader_next and the table of a file's places share.
 * Private to recording/.
 */
#ifndef FORKTAIL_READING_H
#define FORKTAIL_READING_H

#include <zstd.h>

#include "recording.h"

enum { FT_WINDOW_BYTES = 64 << 10 };

struct ft_bytes {
	uint8_t *data;
	size_t room;
};

/* A walk over the blocks of a file: how far it has come, and what it met. */
struct ft_walk {
	uint64_t at;	 /* end of the last whole block */
	uint64_t futile; /* bytes hashed or unpacked in vain, to bound the work a hostile file can ask for */
	uint32_t expected; /* sequence number */
	struct ft_damage damage;
};

struct ft_reader {
	int fd;
	uint64_t size; /* as it was when opened: of a file still being written, what was there */
	struct ft_walk walk;
	uint8_t newer; /* a version above ours that was met */
	bool growing;  /* what is no whole block at its end may become one */
	bool pending;  /* the block found by opening was not handed out yet */
	struct ft_block block;
	struct ft_bytes stored, raw;
	ZSTD_DCtx *zstd;
	uint64_t window_at;
	size_t window_bytes;
	uint8_t window[FT_WINDOW_BYTES];
};

static inline struct ft_walk ft_walk_begin(void)
{
	return (struct ft_walk){.damage.no_trailer = true};
}

/* Finds the next whole block of any kind: 1 and r->block, which ends at r->walk.at; 0 at the end. */
int ft_reader_advance(struct ft_reader *r);

/* Where ft_reader_next goes on, before the reader is used for something else. Who does so sets r->walk to it
 * afterwards. */
struct ft_walk ft_reader_leave(struct ft_reader *r);

/* Reads the header at an offset. False: there is none that could be a whole block's. */
bool ft_reader_header(struct ft_reader *r, uint64_t offset, struct ft_block_header *h);

/* Reads what follows such a header. 1: the whole block is in r->block. 0: there is none. Negative: out of
 * memory. */
int ft_reader_load(struct ft_reader *r, const struct ft_block_header *h, uint64_t offset);

#endif

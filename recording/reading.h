/* SPDX-License-Identifier: MIT */
/* Reading a recording block by block: shared by ft_reader_next and the table of a file's places. Private to
 * recording/. */
#ifndef FORKTAIL_READING_H
#define FORKTAIL_READING_H

#include <zstd.h>

#include "recording.h"

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
int ft_reader_advance(struct ft_reader *r);

/* Position of ft_reader_next, saved before the reader is used for something else. The caller restores r->walk
 * afterwards. */
struct ft_walk ft_reader_leave(struct ft_reader *r);

/* Reads the header at an offset. False: there is no possible block. */
bool ft_reader_header(struct ft_reader *r, uint64_t offset, struct ft_block_header *h);

/* Reads the payload after such a header. 1: the complete block is in r->block. 0: no complete block.
 * Negative: out of memory. */
int ft_reader_load(struct ft_reader *r, const struct ft_block_header *h, uint64_t offset);

#endif

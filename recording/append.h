/* SPDX-License-Identifier: MIT */
/* A recording's file while it is written: complete blocks, one after the other. Private to recording/. For
 * one thread at a time, which may have to wait for the disk. Other threads may read `error` and `offset`. */
#ifndef FORKTAIL_APPEND_H
#define FORKTAIL_APPEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

#include "cover.h"
#include "format.h"

struct ft_file {
	int fd;
	int error;	    /* the first one; read by other threads */
	uint64_t offset;    /* end of the last complete block; read by other threads */
	uint64_t allocated; /* allocated up to here; UINT64_MAX: unknown */
	uint64_t limit;	    /* limit of the file's size: writing beyond it would raise SIGXFSZ */
	uint32_t blocks;
	uint32_t files;		      /* tried so far; read by other threads */
	bool goes_on;		      /* more files follow: an error ends with the next one */
	struct ft_index_entry *index; /* of the next entries: the previous index block, the blocks since */
	size_t index_count;
	ZSTD_CCtx *zstd;
	void *packed;
	size_t packed_room;
};

/* Initializes without a file. Must be freed in any case, also after ft_file_open. */
int ft_file_prepare(struct ft_file *f);

/* Creates the file, or replaces a recording there, like ft_writer_open. Must be freed in any case. */
int ft_file_open(struct ft_file *f, const char *path);

/* Ends the file like ft_file_end, and creates the next or the first one, which must not exist. An error is
 * the file's error until the next call; before the first file there is no error. */
int ft_file_next(struct ft_file *f, int dir, const char *name, const char *manifest, const char *summary);

/* Appends a block whose header has kind, count and the payload's size. The space for closing stays free after
 * it. `pack`: compress it if that saves space; without it, the header already contains the payload's hash.
 * `cover` is for request columns; for records it is computed here. Returns 0 or the file's first error. */
int ft_file_append(struct ft_file *f, struct ft_block_header *header, struct ft_cover cover,
		   const void *payload, bool pack);

/* Writes summary (or NULL), index and trailer, and closes. Returns the file's first error. */
int ft_file_end(struct ft_file *f, const char *summary);
void ft_file_free(struct ft_file *f);

static inline int ft_file_error(const struct ft_file *f)
{
	return __atomic_load_n(&f->error, __ATOMIC_RELAXED);
}

#endif

/* SPDX-License-Identifier: MIT */
/* A recording's file as it is written: whole blocks, one behind the other. Private to recording/.
 *
 * For one thread at a time, which may have to wait for the disk; `error` and `offset` may be read by others.
 */
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
	int error;	    /* the first; read by other threads */
	uint64_t offset;    /* end of the last whole block; read by other threads */
	uint64_t allocated; /* the disk has space for the file up to here; UINT64_MAX: it can't be told */
	uint64_t limit;	    /* of the file's size: writing beyond it would raise SIGXFSZ */
	uint32_t blocks;
	uint32_t files;		      /* begun so far; read by other threads */
	bool goes_on;		      /* others follow it: an error is over with the next one */
	struct ft_index_entry *index; /* of what comes next: the index block before, the blocks since */
	size_t index_count;
	ZSTD_CCtx *zstd;
	void *packed;
	size_t packed_room;
};

/* Of no file yet. What it holds is to be freed in any case, as of ft_file_open. */
int ft_file_prepare(struct ft_file *f);

/* Makes the file, or takes the place of a recording there; as ft_writer_open. What it holds is to be freed in
 * any case. */
int ft_file_open(struct ft_file *f, const char *path);

/* Ends the file, as ft_file_end, and begins another one, which must not be there; or the first. What fails is
 * the file's error until the next call: there is none then. */
int ft_file_next(struct ft_file *f, int dir, const char *name, const char *manifest, const char *summary);

/* Appends a block of which the header tells kind, count and the payload's size; the space that closing takes
 * stays free behind it. `pack`: compress it where that pays; without it the payload's hash is in the header
 * already. `cover` is of request columns; of records it is found here. 0 or the file's first error. */
int ft_file_append(struct ft_file *f, struct ft_block_header *header, struct ft_cover cover,
		   const void *payload, bool pack);

/* Writes summary (or NULL), index and trailer, and closes. The file's first error. */
int ft_file_end(struct ft_file *f, const char *summary);
void ft_file_free(struct ft_file *f);

static inline int ft_file_error(const struct ft_file *f)
{
	return __atomic_load_n(&f->error, __ATOMIC_RELAXED);
}

#endif

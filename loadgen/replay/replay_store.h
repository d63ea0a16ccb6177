/* SPDX-License-Identifier: MIT */
/* The memory that records point into: mapped files, and text that had to be reformatted. None of it moves
 * until all is freed. Only for this module. */
#ifndef FORKTAIL_LOADGEN_REPLAY_STORE_H
#define FORKTAIL_LOADGEN_REPLAY_STORE_H

#include <stddef.h>

#include "replay.h"

struct replay_file {
	const char *at; /* "" when the file is empty */
	size_t size;
	char *path;
	bool mapped;
};

struct replay_chunk {
	struct replay_chunk *next;
	size_t used, room;
	char bytes[];
};

struct replay_store {
	struct replay_file *files; /* in reading order */
	uint32_t file_count;
	struct replay_chunk *chunks; /* the current one first */
};

/* Opens `path`: a file; or a manifest, or a directory with one, and then the files it lists. Negative errno,
 * and a sentence. */
int replay_files_open(struct replay_store *s, const char *path, char *error, size_t size);
/* Space for `bytes`, or NULL. */
char *replay_store_take(struct replay_store *s, size_t bytes);
/* Unmaps the files when no record points into them. */
void replay_store_close_files(struct replay_store *s);
void replay_store_free(struct replay_store *s);

#endif

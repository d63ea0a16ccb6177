/* SPDX-License-Identifier: MIT */
/* What a recording's records point into: files mapped into memory, and text that had to be written anew. None
 * of it moves until all is freed. For this module. */
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
	struct replay_file *files; /* in the order in which they are read */
	uint32_t file_count;
	struct replay_chunk *chunks; /* the one in use first */
};

/* Opens what `path` names: a file; or a manifest, or a directory with one, and then the files it lists.
 * Negative errno, and a sentence. */
int replay_files_open(struct replay_store *s, const char *path, char *error, size_t size);
/* Room for `bytes`, or NULL. */
char *replay_store_take(struct replay_store *s, size_t bytes);
/* Gives the files back, when no record points into them. */
void replay_store_close_files(struct replay_store *s);
void replay_store_free(struct replay_store *s);

#endif

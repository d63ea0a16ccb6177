/* SPDX-License-Identifier: MIT */
/* What the readers of a recording of commands share. */
#ifndef FORKTAIL_LOADGEN_REPLAY_REPLAY_PARTS_H
#define FORKTAIL_LOADGEN_REPLAY_REPLAY_PARTS_H

#include <stddef.h>

#include "loadgen/replay.h"

/* Commands between files and records: their client, time, database, counted name, and whether they are sent.
 * Clients and names are final only after all commands are read; until then they are numbers by order of
 * appearance. The tables behind them are freed before the load begins. */

struct gather_client;
struct gather_name;

struct gather {
	struct replay *r;
	const struct harm_allowed *allowed;
	struct gather_client *clients;	     /* hash table, by name */
	struct gather_name *names, *by_name; /* NAMES_MAX of them, and the hash table of those in use */
	size_t record_room;
	uint64_t first_ns, last_ns; /* REPLAY_NO_TIME: none yet */
};

/* Starts without commands, for a replay that has a store. -ENOMEM on failure. */
int gather_init(struct gather *g, struct replay *r, const struct harm_allowed *allowed);
void gather_free(struct gather *g);

/* Adds a command, or counts it as omitted. False: out of memory. */
bool gather_add(struct gather *g, const struct replay_item *item);
/* After all are added: the most frequent names become operations, the others share one. -ENOMEM on
 * failure. */
int gather_finish(struct gather *g);

/* The memory that records point into: mapped files, and text that had to be reformatted. None of it moves
 * until all is freed. Only for this module. */

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
	size_t file_room;
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

/* When the commands of a replay are due, if not at the times in the file. */

/* An append-only file has times in whole seconds; its commands are distributed over them. */
void replay_spread_seconds(struct replay *r);
/* From the first command to where -l starts again: an average gap after the last one. Never 0, otherwise all
 * rounds would be due at once. Recomputed whenever the records or their times change. */
void replay_set_span(struct replay *r);
#endif

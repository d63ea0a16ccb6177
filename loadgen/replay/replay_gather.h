/* SPDX-License-Identifier: MIT */
/* Commands between files and records: their client, time, database, counted name, and whether they are sent.
 * Clients and names are final only after all commands are read; until then they are numbers by order of
 * appearance. The tables behind them are freed before the load begins. */
#ifndef FORKTAIL_LOADGEN_REPLAY_GATHER_H
#define FORKTAIL_LOADGEN_REPLAY_GATHER_H

#include "replay.h"

/* Names of commands, or of clients: a hash table of numbers, by order of appearance. */
struct gather_table {
	uint32_t *slots; /* number + 1; 0: free */
	uint32_t slot_count, count;
};

struct gather_client;
struct gather_name;

struct gather {
	struct replay *r;
	const struct harm_allowed *allowed;
	struct gather_table clients_table, names_table;
	struct gather_client *clients;
	struct gather_name *names;
	uint32_t client_room, record_room;
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

#endif

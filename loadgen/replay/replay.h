/* SPDX-License-Identifier: MIT */
/* A recording of client commands to a Redis server, prepared for replay: a MONITOR capture, an append-only
 * file (one file, or Redis 7's directory) or a CSV file. The whole file becomes an array of records before
 * the load begins, so that parsing does not disturb it: 32 bytes per command besides its text, and the text
 * of an append-only file stays in the mapped file. Load threads share the array, read-only; each connection
 * follows the chain of its own records (replay_send.c). */
#ifndef FORKTAIL_LOADGEN_REPLAY_H
#define FORKTAIL_LOADGEN_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/workload/pacing.h"
#include "loadgen/workload/workload.h"
#include "rdb.h"
#include "recording/json/json_block.h"
#include "replay_harm.h"

#ifdef __cplusplus
extern "C" {
#endif

enum replay_format { REPLAY_BY_CONTENT, REPLAY_MONITOR, REPLAY_AOF, REPLAY_CSV };
extern const char *const replay_format_names[]; /* "", "monitor", "aof", "csv" */

#define REPLAY_END UINT32_MAX
enum {
	/* One operation collects the less frequent commands, one is for the replay's own SELECTs. */
	REPLAY_NAMES = OPERATIONS_MAX - 2,
	REPLAY_DATABASE_MAX = UINT16_MAX,
};

struct replay_record {
	uint64_t due_ns;   /* since the first one */
	const char *bytes; /* RESP */
	uint32_t length;
	uint32_t client; /* by order of appearance */
	uint32_t next;	 /* of the same connection, or REPLAY_END */
	uint16_t database;
	uint8_t operation; /* its name's number; name_count means all less frequent names */
	bool selects;	   /* it is a SELECT itself, of `database` */
};

struct replay {
	struct replay_record *records;
	uint32_t count, clients;
	enum replay_format format;
	bool timed;	  /* records have times; otherwise all are due at once */
	bool paced;	  /* the times come from --rate */
	double speed;	  /* factor of the times: 2 is twice as fast */
	uint64_t span_ns; /* from the first record to the start of a repetition */
	uint32_t *heads;  /* first record by connection, or REPLAY_END */
	uint32_t connections;

	char names[REPLAY_NAMES][OPERATION_NAME]; /* the most frequent first */
	uint32_t name_count;
	bool others; /* there are commands with other names */

	uint64_t left_out[HARM_MAX];
	uint64_t scripted;  /* calls from scripts: omitted, because the script itself is replayed */
	uint64_t backwards; /* times earlier than the previous one */
	uint64_t preamble_bytes;
	struct rdb_facts preamble;
	char *damage; /* one sentence, or NULL */
	bool cut;     /* the damage is that the file is truncated */

	struct replay_store *store; /* the memory that `bytes` point into */
};

/* Reads a file, a manifest or a directory. *out, or a negative errno and a sentence. */
int replay_load(struct replay **out, const char *path, enum replay_format format,
		const struct harm_allowed *allowed, char *error, size_t size);
void replay_free(struct replay *r);

/* Keeps the first `count` commands. */
void replay_limit(struct replay *r, uint64_t count);
/* Sets new times: `rate` commands per second in the order of the file. */
void replay_pace(struct replay *r, enum arrival arrival, double rate, uint64_t seed);
/* Chains the records of each connection: client number c goes to connection c modulo `connections`. -ENOMEM.
 */
int replay_share(struct replay *r, uint32_t connections);

/* Builds a workload from it: its operations, and the bytes of their requests. The replay must outlive the
 * workload. */
void replay_fill(const struct replay *r, struct workload *w);

/* What was omitted, skipped or damaged: lines for the user, and members of an open object. */
void replay_describe(const struct replay *r, FILE *to);
void replay_describe_json(const struct replay *r, json_t *j);

#ifdef __cplusplus
}
#endif
#endif

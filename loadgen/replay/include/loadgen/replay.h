/* SPDX-License-Identifier: MIT */
/* A recording of commands (MONITOR, AOF, CSV), as requests to send. */
#ifndef FORKTAIL_LOADGEN_REPLAY_H
#define FORKTAIL_LOADGEN_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/workload.h"
#include "recording/json_block.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads commands of a recording one by one: shared by the readers of MONITOR captures, append-only files and
 * CSV. A reader walks over the file in memory and never copies more than the words of one command, so that a
 * file larger than memory can be read, and a test or fuzzer can pass any bytes. Damage ends the reading: all
 * commands before it have been returned, and `why` describes the damage. */

#define REPLAY_NO_TIME UINT64_MAX
enum { REPLAY_OWN_DATABASE = UINT32_MAX, REPLAY_WORDS_MAX = 1 << 20 };

struct replay_word {
	const char *at;
	size_t length;
};

/* A command that a reader found. All its pointers are valid until the next one. */
struct replay_item {
	uint64_t time_ns;	   /* since any origin, or REPLAY_NO_TIME */
	struct replay_word client; /* the client; empty if the file has one stream of commands */
	uint32_t database;	   /* REPLAY_OWN_DATABASE: the database that its client's SELECTs chose */
	bool scripted;		   /* a script called it */
	const struct replay_word *words;
	uint32_t word_count;	 /* at least 1 */
	struct replay_word wire; /* its bytes in the file if they are RESP already; else NULL */
};

struct replay_reader {
	const char *begin, *at, *end;
	uint64_t line;	    /* lines started so far */
	uint64_t second_ns; /* AOF: of the last time annotation */
	bool cut;	    /* the damage is that the file is truncated */
	char why[160];	    /* the damage at `at` */
	struct replay_text {
		char *at;
		size_t length, room;
	} text; /* unescaped words */
	struct replay_word *words;
	uint32_t word_count;
	size_t word_room;
};

void replay_reader_init(struct replay_reader *r, const char *begin, const char *end);
void replay_reader_free(struct replay_reader *r);

/* 1: a command. 0: the end. -1: damage at r->at, or out of memory; r->why says which. */
int replay_monitor_next(struct replay_reader *r, struct replay_item *item);
int replay_aof_next(struct replay_reader *r, struct replay_item *item);
int replay_csv_next(struct replay_reader *r, struct replay_item *item);

/* ---- for readers ---- */

/* Starts a command whose unescaped words need at most `bytes`. */
bool replay_words_begin(struct replay_reader *r, size_t bytes);
/* Adds a word and copies its bytes. False: too many, or out of memory; r->why is set. */
bool replay_words_add(struct replay_reader *r, const char *at, size_t length);
/* Damage at `at`. Returns -1. */
int replay_damage(struct replay_reader *r, const char *at, bool cut, const char *why);
/* "1339518083.107412" in nanoseconds, and advances. Digits after the ninth decimal are ignored. False: not
 * such a number. */
bool replay_read_seconds(const char **at, const char *end, uint64_t *ns);

/* Finds the end of an RDB file when something follows it: an append-only file may begin with one (the
 * preamble), followed by the commands. An RDB does not contain its length, so it must be walked entry by
 * entry, without decoding it. */

struct rdb_facts {
	uint32_t version;
	uint64_t keys, functions; /* walked over */
};

/* The bytes of the RDB at `at`, checksum included. 0, and a sentence that continues "the RDB preamble ...":
 * it is truncated, damaged, or unknown to this version. `facts` are filled up to there. */
size_t rdb_length(const char *at, const char *end, struct rdb_facts *facts, char *error, size_t size);

/* Which commands of a recording are not sent: those that would harm the server or its data beyond load, and
 * those that prevent a connection from answering one reply per request. A capture comes from a server whose
 * flushes and failovers had reasons; it is replayed on another server, or on the same one later. */

/* Allowed commands, by their row in the table of commands. */
struct harm_allowed {
	bool of[COMMAND_ROWS];
};

/* "flushall,config", "client kill" or "all"; false, and a sentence. Commands that change the protocol can't
 * be allowed. */
bool harm_allow(struct harm_allowed *allowed, const char *list, char *error, size_t size);

/* The row that makes a command omitted, or -1: it is sent. `row`: of its first word. */
int harm_find(const struct harm_allowed *allowed, const struct replay_item *item,
	      const struct command_row *row);
/* Why: "blocks without limit". */
const char *harm_reason(int command);

/* A recording of client commands to a Redis server, prepared for replay: a MONITOR capture, an append-only
 * file (one file, or Redis 7's directory) or a CSV file. The whole file becomes an array of records before
 * the load begins, so that parsing does not disturb it: 32 bytes per command besides its text, and the text
 * of an append-only file stays in the mapped file. Load threads share the array, read-only; each connection
 * follows the chain of its records (replay_lanes.c). */

enum replay_format { REPLAY_BY_CONTENT, REPLAY_MONITOR, REPLAY_AOF, REPLAY_CSV };
extern const char *const replay_format_names[]; /* "", "monitor", "aof", "csv" */

#define REPLAY_END UINT32_MAX
/* Which commands stay in order: those of a client, or those of a key. */
enum replay_order { REPLAY_ORDER_DEFAULT, REPLAY_ORDER_CLIENT, REPLAY_ORDER_KEY };
extern const char *const replay_order_names[]; /* "", "client", "key" */

/* Instead of a record's number in `recorded` requests of the generator itself: bytes of a record, without a
 * figure of their own; DISCARD. Smaller numbers are databases to select. */
#define REPLAY_AGAIN (1ull << 32)
#define REPLAY_DISCARD (1ull << 33)
enum {
	REPLAY_SLOTS = 16384,
	/* One operation collects the less frequent commands, one is for the replay's own SELECTs. */
	REPLAY_NAMES = OPERATIONS_MAX - 2,
	REPLAY_DATABASE_MAX = UINT16_MAX,
};

/* A record's part in a transaction of its client. */
enum replay_part {
	REPLAY_PLAIN, /* none */
	REPLAY_WATCH,
	REPLAY_UNWATCH, /* ends it before MULTI */
	REPLAY_MULTI,
	REPLAY_QUEUED,
	REPLAY_EXEC /* or DISCARD */
};

struct replay_record {
	uint64_t due_ns;   /* since the first one */
	const char *bytes; /* RESP */
	uint32_t length;
	uint32_t
	    lane; /* commands of one lane stay in order: the number of its client, by order of appearance */
	uint32_t next; /* of the same connection, or REPLAY_END */
	uint16_t database;
	uint8_t operation; /* its name's number; name_count means all less frequent names */
	bool selects : 1;  /* it is a SELECT itself, of `database` */
	uint8_t part : 3;  /* enum replay_part */
};

struct replay {
	struct replay_record *records;
	uint32_t count, clients;
	enum replay_format format;
	bool timed;	  /* records have times; otherwise all are due at once */
	bool paced;	  /* the times come from --rate */
	double speed;	  /* factor of the times: 2 is twice as fast */
	bool by_key;	  /* lanes are keys, not clients */
	uint64_t span_ns; /* from the first record to the start of a repetition */
	uint32_t *heads;  /* first record by connection, or REPLAY_END */
	uint32_t connections;

	uint16_t *slots; /* of the records' keys, or NO_SLOT; NULL: not needed */

	char names[REPLAY_NAMES][OPERATION_NAME]; /* the most frequent first */
	uint32_t name_count;
	bool others; /* there are commands with other names */

	uint64_t left_out[COMMAND_ROWS]; /* by row of the table of commands */
	uint64_t scripted;	 /* calls from scripts: omitted, because the script itself is replayed */
	uint64_t backwards;	 /* times earlier than the previous one */
	uint64_t outside_sample; /* commands outside the sample */
	uint64_t unfinished;	 /* commands of transactions without an end, omitted */
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

/* Finds the slot of each record's first key with `slot_of`, which receives the command's words and returns 0
 * or a negative errno (replay_harm.c). Returns that, or -ENOMEM. */
typedef int replay_slot_of(void *who, const struct replay_word *words, uint32_t count, uint16_t *slot);
int replay_find_slots(struct replay *r, replay_slot_of *slot_of, void *who);
/* Finds the transactions of each client. Their commands get the slot of the first key in them. `together`:
 * sends a transaction at the place and time of its EXEC, WATCH included, so that commands of other clients on
 * the same connection are not among its own; transactions without an end are omitted. -ENOMEM. */
int replay_find_transactions(struct replay *r, bool together);
/* Keeps the commands of a part of the slots, about `share` of them, which `seed` chooses. Commands without a
 * key are kept by client, SELECTs always. */
void replay_sample(struct replay *r, double share, uint64_t seed);
/* Assigns records to lanes 0 to `connections` - 1: commands of a slot have one lane, whichever client they
 * are of. */
void replay_order_by_key(struct replay *r, uint32_t connections);
/* Chains the records of each connection: lane number n goes to connection n modulo `connections`. -ENOMEM. */
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

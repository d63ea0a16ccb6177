/* SPDX-License-Identifier: MIT */
/* Reads commands of a recording one by one: shared by the readers of MONITOR captures, append-only files and
 * CSV. A reader walks over the file in memory and never copies more than the words of one command, so that a
 * file larger than memory can be read, and a test or fuzzer can pass any bytes. Damage ends the reading: all
 * commands before it have been returned, and `why` describes the damage. */
#ifndef FORKTAIL_LOADGEN_REPLAY_ITEM_H
#define FORKTAIL_LOADGEN_REPLAY_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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
	uint32_t word_count, word_room;
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

#ifdef __cplusplus
}
#endif
#endif

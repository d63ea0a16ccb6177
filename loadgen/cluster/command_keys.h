/* SPDX-License-Identifier: MIT */
/* Where a command has its first key, as the server reports it: COMMAND INFO once for each command name. Redis
 * 7 and Valkey describe it completely (key specifications), so the key of EVAL, XREAD or ZUNIONSTORE is found
 * without asking for each command. Older servers report fixed positions only; COMMAND GETKEYS finds the
 * others. Words are given as for redisCommandArgv: `lengths` NULL means that all end with 0. */
#ifndef FORKTAIL_LOADGEN_COMMAND_KEYS_H
#define FORKTAIL_LOADGEN_COMMAND_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct link;
struct redisReply;

enum { KEY_SPECS_MAX = 4, KEY_KEYWORD = 24 };

/* One key specification, as far as the first key depends on it
 * (https://redis.io/docs/latest/develop/reference/key-specs/). */
struct key_spec {
	char keyword[KEY_KEYWORD]; /* the keys begin after this word; "": at a fixed position */
	int32_t from; /* that position, or where the search begins; below 0: from the end, backwards */
	bool counted; /* the number of keys is among the words */
	int32_t count_at, first; /* counted: positions of the number and the first key, from the beginning */
};

struct command_keys {
	int known; /* 1: as follows. 0: the server has no such command. -1: it does not answer COMMAND INFO,
		      so the second word is assumed to be the key */
	bool reads, writes;
	bool container; /* the next word is a part of its name */
	bool ask;	/* if there is no key by these specifications, COMMAND GETKEYS may find one */
	uint32_t spec_count;
	struct key_spec specs[KEY_SPECS_MAX];
};

/* Reads the answer to COMMAND INFO for one command. */
void command_keys_read(struct command_keys *k, const struct redisReply *answer);
/* The number of the word with the first key. 0: none. */
uint32_t command_keys_first(const struct command_keys *k, uint32_t count, const char *const *words,
			    const size_t *lengths);

/* What is known of the commands of one server. NULL: out of memory. */
struct command_table *command_table_new(struct link *l);
void command_table_free(struct command_table *t);
/* Finds a command by its words, asking the server for a name that is new. NULL: no answer or out of memory;
 * link_error says why. */
const struct command_keys *command_table_find(struct command_table *t, uint32_t count,
					      const char *const *words, const size_t *lengths);
/* Asks for the first key of a command. *key is NULL without one, else as long as the reply, which
 * must be freed. NULL: no answer. */
struct redisReply *command_table_ask(struct command_table *t, uint32_t count, const char *const *words,
				     const size_t *lengths, const struct redisReply **key);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* The table of commands that a request log can name. Its indices are the operations of the log, one byte
 * each, so the table has at most 254 entries: the commands of Redis 7.2 to 8.0, Valkey 8 and memcached that
 * servers receive often or that take long, and the commonest of modules. All others share one entry. */
#ifndef FORKTAIL_LOADER_COMMANDS_H
#define FORKTAIL_LOADER_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	COMMAND_UNKNOWN = 0, /* "unknown": the request's bytes were not captured, or are encrypted */
	COMMAND_OTHER = 253, /* "other": not in the table */
	COMMANDS,	     /* the number of names */
	COMMAND_BYTES = 24,  /* no name is longer */
};

/* Properties of a command, a set of bits. */
enum command_flags {
	/* Redis */
	COMMAND_BLOCKING = 1 << 0,     /* may wait for data or for replicas */
	COMMAND_BLOCK_OPTION = 1 << 1, /* does so with the argument BLOCK: XREAD, XREADGROUP */
	COMMAND_PUSHES = 1 << 2,       /* the server then writes without requests */
	COMMAND_MULTI = 1 << 3,	       /* begins a transaction */
	COMMAND_EXEC = 1 << 4,	       /* ends one */
	COMMAND_CLIENT = 1 << 5,       /* CLIENT, whose subcommands matter */
	COMMAND_RESET = 1 << 6,	       /* RESET, which undoes CLIENT REPLY and MULTI */
	COMMAND_REDIS = (1 << 7) - 1,  /* all of the above */
	/* memcached's text protocol */
	COMMAND_MEMCACHED = 1 << 7,   /* one of its commands */
	COMMAND_DATA = 1 << 8,	      /* a block of data follows the line */
	COMMAND_META = 1 << 9,	      /* has single-letter flags after the key */
	COMMAND_NOREPLY = 1 << 10,    /* accepts "noreply" as its last word */
	COMMAND_MANY_KEYS = 1 << 11,  /* its line may have any length */
	COMMAND_KEY_SECOND = 1 << 12, /* its key is the second argument: gat, gats */
	COMMAND_NO_KEY = 1 << 13,     /* has no key: flush_all, verbosity */
	COMMAND_CAS = 1 << 14,	      /* cas, which has one more word */
};

/* The name of an index, upper case except "unknown" and "other". An index beyond the table is "other". */
const char *commands_name(unsigned command);

/* The index of a name, which must be upper case; COMMAND_OTHER if it is not in the table. */
unsigned commands_find(const char *upper, size_t bytes);

/* enum command_flags of an index; 0 for the two that are not commands. */
unsigned commands_flags(unsigned command);

/* The index of an opcode of memcached's binary protocol. */
unsigned commands_of_opcode(uint8_t opcode);

/* Whether an opcode is one of the quiet ones, which the server answers for some results only. */
bool commands_opcode_quiet(uint8_t opcode);

#ifdef __cplusplus
}
#endif
#endif

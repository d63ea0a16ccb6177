/* SPDX-License-Identifier: MIT */
/* The commands of Redis and memcached: one row each, with all that our programs know of a command. The
 * recorder finds requests and their ends with it, the load generator writes requests and judges answers, a
 * replay omits harmful commands, and the analysis knows which ones wait. */
#ifndef FORKTAIL_COMMON_COMMANDS_H
#define FORKTAIL_COMMON_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first rows are those that a request log names, sorted. Their indices are its operations, one byte each,
 * so there are at most 254: the commands of Redis 7.2 to 8.0, Valkey 8 and memcached that servers receive
 * often or that take long, and the commonest of modules. All others share one. Behind them are rows of other
 * commands, and of subcommands such as "CLIENT KILL". */
enum {
	COMMAND_UNKNOWN = 0, /* "unknown": the request's bytes were not captured, or are encrypted */
	COMMAND_OTHER = 253, /* "other": the log does not name it */
	COMMANDS,	     /* the number of names of a log */
	COMMAND_ROWS = 279,
	COMMAND_BYTES = 24, /* no name is longer */
};

/* Properties of a command, a set of bits. */
enum command_flags {
	/* Redis */
	COMMAND_BLOCKING = 1 << 0, /* may wait for data or for replicas; its last argument is the time-out */
	COMMAND_BLOCK_OPTION =
	    1 << 1,		 /* does so with the argument BLOCK, before the time-out: XREAD, XREADGROUP */
	COMMAND_PUSHES = 1 << 2, /* the server then writes without requests */
	COMMAND_MULTI = 1 << 3,	 /* begins a transaction */
	COMMAND_EXEC = 1 << 4,	 /* ends one */
	COMMAND_CLIENT = 1 << 5, /* CLIENT, whose subcommands matter */
	COMMAND_RESET = 1 << 6,	 /* RESET, which undoes CLIENT REPLY and MULTI */
	COMMAND_HELLO = 1 << 15, /* HELLO, which may name the connection */
	COMMAND_REDIS = ((1 << 7) - 1) | COMMAND_HELLO, /* all of the above */
	/* memcached's text protocol */
	COMMAND_MEMCACHED = 1 << 7,   /* one of its commands */
	COMMAND_DATA = 1 << 8,	      /* a block of data follows the line */
	COMMAND_META = 1 << 9,	      /* has single-letter flags after the key */
	COMMAND_NOREPLY = 1 << 10,    /* accepts "noreply" as its last word */
	COMMAND_MANY_KEYS = 1 << 11,  /* its line may have any length */
	COMMAND_KEY_SECOND = 1 << 12, /* its key is the second argument: gat, gats */
	COMMAND_NO_KEY = 1 << 13,     /* has no key: flush_all, verbosity */
	COMMAND_CAS = 1 << 14,	      /* cas, which has one more word */
	/* not for the scanner of requests, whose properties have 16 bits */
	COMMAND_READS = 1 << 16,	 /* memcached: changes nothing */
	COMMAND_WATCH = 1 << 17,	 /* WATCH */
	COMMAND_UNWATCH = 1 << 18,	 /* UNWATCH */
	COMMAND_PARTS = 1 << 19,	 /* some of its subcommands have rows */
	COMMAND_TIMEOUT_FIRST = 1 << 20, /* the time-out of a blocking one is its second word */
};

/* Why a replay omits a command by default. */
enum command_harm {
	HARM_NONE,
	HARM_LOSES_DATA,
	HARM_STOPS_SERVER,
	HARM_CHANGES_SERVER,
	HARM_CHANGES_ROLE,
	HARM_CUTS_CLIENTS,
	HARM_LOADS_DISK,
	HARM_LOSES_EVIDENCE,
	HARM_BLOCKS,   /* only if it would block without limit: a time-out of 0 */
	HARM_PROTOCOL, /* cannot be allowed */
};

/* Whether a command of Redis changes data. */
enum command_writes {
	WRITES_NOTHING,
	WRITES,	   /* COMMAND's flag "write" */
	MAY_WRITE, /* it runs code */
};

/* The kinds of answers to a command. Redis' kinds have the numbers of its scanner, so that the hot path
 * compares them directly. */
enum reply_kind {
	REPLY_ANY = 0, /* any reply except an error */
	REPLY_LINE = '+',
	REPLY_INTEGER = ':',
	REPLY_VALUE = '$', /* for memcached: values, or none */
	REPLY_LIST = '*',
	REPLY_NIL = 'n',
	/* memcached's */
	REPLY_STORED = 128,
	REPLY_DELETED,
	REPLY_TOUCHED,
	REPLY_ITEM, /* to a meta command's read: with or without the value, depending on its flags */
	REPLY_VERSION,
	REPLY_DEBUG,
	REPLY_NOOP,
	REPLY_OTHER,  /* to a text command that the load generator does not send */
	REPLY_OPCODE, /* to a binary one: it contains the command */
};

/* A command of memcached as a user writes it: VERB KEY [DATA or NUMBER] [EXPIRY]. */
enum memcached_form { FORM_KEY, FORM_STORE, FORM_NUMBER, FORM_EXPIRY, FORM_BARE };

struct command_row {
	const char *name; /* in upper case */
	uint8_t bytes;
	uint8_t key; /* the word with the first key, as Redis' COMMAND says; 0: none, or options precede it */
	uint8_t split;	/* words per key of a command that a proxy divides by key (MGET 1, MSET 2); 0: not
			   divided */
	uint8_t harm;	/* enum command_harm */
	uint8_t writes; /* enum command_writes */
	uint32_t flags;
	/* Redis' reply when the command succeeds, and when the key is missing (REPLY_ANY: no reply is a
	 * miss): enum reply_kind. For a command of up to `words` words (0: any number); a longer one may get
	 * any reply. */
	struct {
		uint8_t kind, miss, words;
	} reply;
	/* memcached's binary protocol: the opcode that is sent first, then those that only arrive. */
	uint16_t opcodes[4];
	/* memcached's commands that the load generator sends. */
	struct memcached_command {
		uint8_t form;			   /* enum memcached_form */
		uint8_t words_min, words_max;	   /* 0: it is not sent */
		uint8_t reply;			   /* enum reply_kind of its answer */
		const char *meta, *before, *after; /* as a meta command: its verb, the text before each word
						      behind the key that is no data, and its last flags */
	} memcached;
};

/* By index. */
extern const struct command_row commands_table[COMMAND_ROWS];

/* The name of an operation of a log, upper case except "unknown" and "other". An index beyond them is
 * "other". */
const char *commands_name(unsigned command);

/* enum command_flags of an operation of a log; 0 for the two that are not commands. */
unsigned commands_flags(unsigned command);

/* The operation of a name, which must be upper case; COMMAND_OTHER if the log does not name it. */
unsigned commands_find(const char *upper, size_t bytes);

/* The row of a command's first word, in any case; NULL: it has none. */
const struct command_row *commands_row(const char *word, size_t bytes);
/* The row of its subcommand, in any case; NULL: it has none. */
const struct command_row *commands_part(const struct command_row *row, const char *word, size_t bytes);

/* The operation of an opcode of memcached's binary protocol. */
unsigned commands_of_opcode(uint8_t opcode);

/* Whether an opcode is one of the quiet ones, which the server answers for some results only. */
bool commands_opcode_quiet(uint8_t opcode);

#ifdef __cplusplus
}
#endif
#endif

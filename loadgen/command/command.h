/* SPDX-License-Identifier: MIT */
/* A command with placeholders, as a user writes it. Protocols define its bytes on the wire. A command is a
 * list of words, and a word a list of parts: text, or a placeholder filled with a number drawn per request.
 * If every part has a fixed width, the command is formatted once as a template, and only its placeholders'
 * digits are patched during the load (workload.c). Otherwise it is formatted per request. The same writer
 * (protocol.h) does both, so that they can't differ. */
#ifndef FORKTAIL_LOADGEN_COMMAND_H
#define FORKTAIL_LOADGEN_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "data_set.h"
#include "keynames.h"
#include "random.h"
#include "values.h"

#ifdef __cplusplus
extern "C" {
#endif

enum part_kind {
	PART_TEXT,
	PART_KEY,	  /* __key__: the name of the request's key */
	PART_OTHER_KEY,	  /* __other_key__: another key, drawn uniformly */
	PART_DATA,	  /* __data__: a value */
	PART_INT,	  /* __int__, __rand_int__: 12 digits of a number below the key space */
	PART_SCORE,	  /* __score__: 0.000000 .. 0.999999 */
	PART_FIELD,	  /* __field__: field0 .. field9, or to --fields N */
	PART_EXPIRY,	  /* __expiry__: seconds from --expiry */
	PART_INDEX_SCORE, /* YCSB's score of the key */
	PART_SCAN_LENGTH, /* YCSB: 1 .. 100 */
	PART_STAMP,	  /* a message that contains its sending time (stamp.h); no placeholder produces it */
	PART_CAPTURED,	  /* a key from a previous answer: YCSB's scans */
	PART_KEY_NUMBER,  /* __key_number__: 12 digits of the number of the request's key */
	PART_TAG,	  /* __tag__: 5 digits derived from it, for keys that should share a cluster's slot */
	PART_RANGE,	  /* __int:LOW:HIGH__: a whole number, both ends included */
	PART_DECIMAL,	  /* __float:LOW:HIGH__: with six decimals */
	PART_VECTOR,	  /* __vector:N__: N 32-bit floats of -1 to 1, in binary, little-endian */
	PART_SAME_KEY,	  /* __key1__ .. __key9__: a key drawn once per request */
	PART_SAME_INT,	  /* __int1__ .. __int9__: 12 digits drawn once per request */
	PART_COLUMN,	  /* __field:NAME__: the field of the request's row in the data set */
	PART_JSON,	  /* __json:NAME__: the same, as the inside of a JSON string */
	PART_CURSOR,	  /* __cursor__: from this connection's last answer to the command, else 0 */
	PART_OPAQUE, /* the request's number on its connection, added by the writer of the meta protocol */
};

struct command_part {
	enum part_kind kind;
	uint32_t length;  /* PART_TEXT */
	char *text;	  /* PART_TEXT; of PART_COLUMN and PART_JSON the column's name */
	double low, high; /* PART_RANGE, PART_DECIMAL: whole numbers up to 2^53 are exact */
	uint32_t number;  /* of the column; PART_VECTOR: floats; PART_SAME_...: which one */
};

struct command_word {
	uint32_t first, count; /* of the command's parts */
};

/* A name's bytes and terminating 0, as truncated by command_name. */
enum { COMMAND_NAME = 24 };
enum { COMMAND_WORDS_MAX = 256, COMMAND_PARTS_MAX = 512, WORD_PARTS_MAX = 64, COMMAND_PATCHES_MAX = 64 };

struct command {
	struct command_word *words;
	struct command_part *parts;
	uint32_t word_count, part_count;
	bool once;     /* some numbers are drawn once per request */
	bool cursor;   /* __cursor__ */
	bool inserts;  /* __new_key__: the key is the next one of a growing base */
	bool inlined;  /* Redis' inline form: the words, CRLF */
	bool quiet;    /* memcached's meta commands: misses get no answer */
	bool numbered; /* they get an opaque number that identifies the answer */
};

/* Sources of placeholder values; shared and read-only except `random`. */
struct fill {
	const struct key_names *names;
	const struct values *values;
	uint64_t keys;
	uint32_t fields;
	uint32_t expiry_low, expiry_high; /* seconds; high 0: no expiry */
	bool values_of_keys;		  /* a value's seed is its key's */
	const char *fixed_value;	  /* not NULL: used for every value */
	struct stamps *stamps;		  /* PART_STAMP */
	const struct data_set *data;	  /* PART_COLUMN, PART_JSON; NULL: none */
};

/* Position of a placeholder's digits in a formatted command of fixed width. */
struct patch {
	uint32_t at;
	uint16_t kind, width; /* enum part_kind; digits */
};
struct patches {
	uint32_t count;
	struct patch list[COMMAND_PATCHES_MAX];
};

/* Parses text as a user writes it: words separated by blanks, "quoted words" with the escapes \n \r \t \xHH
 * \" \\, and 'words' in which only \' is an escape. False, and a sentence in `error`. */
bool command_parse(struct command *c, const char *text, char *error, size_t size);
/* Finds the columns of its placeholders. False, and a sentence: no data set (NULL), or no such column. */
bool command_bind(struct command *c, const struct data_set *data, char *error, size_t size);
void command_free(struct command *c);
/* The first word, in upper case. */
void command_name(const struct command *c, char *out, size_t size);
/* Whether every placeholder has a fixed width for this fill. */
bool command_fixed(const struct command *c, const struct fill *f);

/* PART_TAG: as many tags as a cluster has slots, so that tags are distributed as evenly as keys. */
enum { TAGS = 16384, TAG_DIGITS = 5 };

/* What differs between requests besides drawn numbers. */
struct request_values {
	uint64_t key;
	const char *captured; /* PART_CAPTURED, PART_CURSOR */
	uint32_t captured_length;
	uint32_t opaque;      /* PART_OPAQUE */
	uint64_t intended_ns; /* PART_STAMP; 0: when it is sent */
	uint64_t seed;	      /* of what is drawn once per request */
};

/* Writes a patch's digits again. */
static inline void patch_apply(const struct patch *p, const struct fill *f, const struct request_values *v,
			       struct random_stream *random, char *request)
{
	uint64_t number = v->key;

	if (p->kind != PART_KEY)
		number = p->kind == PART_KEY_NUMBER ? v->key
			 : p->kind == PART_TAG	    ? v->key % TAGS
			 : p->kind == PART_SCORE    ? random_below(random, 1000000)
			 : p->kind == PART_OPAQUE   ? v->opaque
			 : p->kind == PART_FIELD    ? random_below(random, f->fields)
						    : random_below(random, f->keys);
	if (p->width == KEY_DIGITS)
		digits_write_key(request + p->at, number);
	else
		digits_write(request + p->at, p->width, number);
}

#ifdef __cplusplus
}
#endif
#endif

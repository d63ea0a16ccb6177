/* SPDX-License-Identifier: MIT */
/* Shared by the parts of the request scanner, one per form of requests. Each part proceeds from the state it
 * left, and all of them collect arguments with the functions below. */
#ifndef FORKTAIL_LOADER_SCAN_STATE_H
#define FORKTAIL_LOADER_SCAN_STATE_H

#include <endian.h>
#include <stddef.h>
#include <string.h>

#include "commands.h"
#include "scanner.h"

enum scan_state {
	SCAN_BEGIN, /* zero: a scanner between requests */
	SCAN_ARRAY_COUNT,
	SCAN_ARRAY_COUNT_LF,
	SCAN_ARGUMENT, /* before its "$" */
	SCAN_ARGUMENT_LENGTH,
	SCAN_ARGUMENT_LENGTH_LF,
	SCAN_IN_VALUE,
	SCAN_VALUE_CR,
	SCAN_VALUE_LF,
	SCAN_IN_LINE,
	SCAN_IN_DATA, /* memcached's block after a line */
	SCAN_DATA_CR,
	SCAN_DATA_LF,
	SCAN_IN_HEADER, /* of a binary request */
	SCAN_IN_BODY,
};

enum scan_word_state {
	SCAN_BETWEEN_WORDS,
	SCAN_IN_WORD,
	SCAN_AFTER_CR, /* of a line of memcached */
	/* of an inline command: */
	SCAN_IN_DOUBLE_QUOTES,
	SCAN_AFTER_BACKSLASH,
	SCAN_IN_SINGLE_QUOTES,
	SCAN_AFTER_SINGLE_BACKSLASH, /* which escapes only a single quote */
	SCAN_AFTER_QUOTES,
};

enum scan_result {
	SCAN_REFUSED = -1,
	SCAN_CONTINUES = 0,
	SCAN_COMPLETE = 1,
	SCAN_NOTHING = 2, /* complete, but no request: an empty line or array */
};

enum scan_option {
	SCAN_NO_OPTION,
	SCAN_OPTIONS_END, /* later arguments do not matter */
	SCAN_CLIENT_REPLY,
	SCAN_CLIENT_REPLY_ON,
	SCAN_CLIENT_REPLY_OFF,
	SCAN_CLIENT_REPLY_SKIP,
	SCAN_CLIENT_TRACKING,
	SCAN_READ_GROUP, /* XREADGROUP: the names of the group and the consumer follow */
	/* Bits, for the options of memcached. */
	SCAN_DATA_LENGTH = 16,	/* it is valid, and in `left` */
	SCAN_KEY_TOO_LONG = 32, /* so the server reads no data */
	SCAN_NOREPLY = 64,	/* the last word */
};

/* Each proceeds until a result other than SCAN_CONTINUES or until the end. *at is after the bytes it used. */
int scan_array(struct scanner *s, const uint8_t **at, const uint8_t *end);
int scan_inline(struct scanner *s, const uint8_t **at, const uint8_t *end);
int scan_line(struct scanner *s, const uint8_t **at, const uint8_t *end); /* memcached, or to be decided */
int scan_memcached_data(struct scanner *s, const uint8_t **at, const uint8_t *end);
int scan_memcached_binary(struct scanner *s, const uint8_t **at, const uint8_t *end);

/* The command word is complete. SCAN_REFUSED: a lost scanner does not accept it. */
int scan_command_word(struct scanner *s);
/* An argument was gathered in `word`. */
void scan_option_word(struct scanner *s);
void scan_memcached_option(struct scanner *s);

/* The first bytes of the argument are compared with known words, in upper case unless they are memcached's.
 */
void scan_gather(struct scanner *s, const uint8_t *bytes, size_t count);
void scan_hash_key(struct scanner *s, const uint8_t *bytes, size_t count);

/* One step of a multiplicative hash. It distinguishes requests that are in flight at the same time. It does
 * not resist a client that wants two requests to have one hash. */
static inline uint64_t scan_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

/* Whether the gathered word is `text`, of at most SCAN_WORD bytes. */
static inline bool scan_is_word(const struct scanner *s, const char *text)
{
	size_t bytes = strlen(text);

	return s->length == bytes && memcmp(s->word, text, bytes) == 0;
}

static inline void scan_begin_argument(struct scanner *s)
{
	unsigned key = s->properties & COMMAND_KEY_SECOND ? 2 : 1;

	s->length = 0;
	if (s->arguments == 0) {
		s->gathers = true;
		return;
	}
	s->key_left = s->arguments == key && !(s->properties & COMMAND_NO_KEY) ? SCAN_KEY : 0;
	if (s->memcached)
		s->gathers =
		    s->key_left == 0 && s->properties & (COMMAND_DATA | COMMAND_META | COMMAND_NOREPLY);
	else
		s->gathers =
		    s->option != SCAN_OPTIONS_END && s->properties & (COMMAND_CLIENT | COMMAND_BLOCK_OPTION);
}

static inline void scan_argument_bytes(struct scanner *s, const uint8_t *bytes, size_t count)
{
	if (s->gathers)
		scan_gather(s, bytes, count);
	if (s->key_left)
		scan_hash_key(s, bytes, count);
	s->length += count;
}

static inline void scan_end_chunk(struct scanner *s)
{
	if (s->chunk_bytes == 0)
		return;
	s->hash = scan_mix(s->hash, s->chunk);
	s->chunk = 0;
	s->chunk_bytes = 0;
}

/* SCAN_CONTINUES or SCAN_REFUSED. */
static inline int scan_end_argument(struct scanner *s)
{
	if (s->arguments == 0) {
		if (scan_command_word(s) < 0)
			return SCAN_REFUSED;
	} else if (s->memcached) {
		scan_memcached_option(s);
	} else if (s->gathers) {
		scan_option_word(s);
	}
	scan_end_chunk(s);
	s->gathers = false;
	s->key_left = 0;
	s->hash = scan_mix(s->hash, s->length);
	s->arguments++;
	return SCAN_CONTINUES;
}

/* Bytes of a value: the next `s->left` of the stream at most. Returns whether the value is complete. */
static inline bool scan_value(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	size_t have = (size_t)(end - *at), count = have < s->left ? have : (size_t)s->left;

	scan_argument_bytes(s, *at, count);
	s->left -= count;
	*at += count;
	return s->left == 0;
}

#endif

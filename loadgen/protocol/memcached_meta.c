/* SPDX-License-Identifier: MIT */
/* The scanner of replies to memcached's meta commands, in two layers like resp.c. Nearly all replies are
 * complete in the buffer and skipped at once; split, long or unusual replies are processed byte by byte in
 * states. The first layer accepts nothing that the second would refuse, and refuses nothing itself. So a
 * split never decides whether a reply is valid. */
#include "memcached_meta.h"

#include <string.h>

enum state {
	AT_REPLY, /* zero: a scanner at rest */
	IN_WORD,
	IN_TEXT, /* the rest of a line, which is not parsed */
	IN_SIZE,
	AT_FLAG, /* after the space before a flag */
	IN_FLAG,
	IN_OPAQUE,
	AT_LF,
	IN_DATA, /* number: bytes to skip before the closing CRLF */
	AT_DATA_CR,
	AT_DATA_LF,
};

enum { SIZE_DIGITS = 10 };

enum tail { FLAGS, SIZE, TEXT }; /* what may follow a word: any number of flags, a length and flags, text */

static const struct word {
	const char *word;
	uint8_t kind;
	uint8_t tail;
} words[] = {
    {"VA", MEMCACHED_META_VALUE, SIZE},
    {"HD", MEMCACHED_META_DONE, FLAGS},
    {"EN", MEMCACHED_META_MISS, FLAGS},
    {"NF", MEMCACHED_META_NOT_FOUND, FLAGS},
    {"NS", MEMCACHED_META_NOT_STORED, FLAGS},
    {"EX", MEMCACHED_META_EXISTS, FLAGS},
    {"MN", MEMCACHED_META_NOOP, FLAGS},
    {"ME", MEMCACHED_META_DEBUG, TEXT},
    {"VERSION", MEMCACHED_META_VERSION, TEXT},
    {"STORED", MEMCACHED_META_STORED, FLAGS},
    {"ERROR", MEMCACHED_META_ERROR, TEXT},
    {"CLIENT_ERROR", MEMCACHED_META_ERROR, TEXT},
    {"CLIENT_ERRROR", MEMCACHED_META_ERROR, TEXT}, /* 1.6.18 answers this to a key that is too long */
    {"SERVER_ERROR", MEMCACHED_META_ERROR, TEXT},
};

static inline int reply_done(struct memcached_meta_scanner *s)
{
	s->kind = s->type;
	s->state = AT_REPLY;
	return 1;
}

/* The LF of a line was found. 1: reply complete, 0: continue. */
static int line_done(struct memcached_meta_scanner *s)
{
	if (s->type != MEMCACHED_META_VALUE)
		return reply_done(s);
	s->state = s->number ? IN_DATA : AT_DATA_CR;
	return 0;
}

/* The first word of a line ended at a space or CR. */
static int word_done(struct memcached_meta_scanner *s, char byte)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		const struct word *w = &words[i];

		if (strcmp(w->word, s->line.word) != 0)
			continue;
		s->type = w->kind;
		if (byte == '\r' && w->tail == SIZE)
			return -1;
		s->state = byte == '\r'	     ? AT_LF
			   : w->tail == SIZE ? IN_SIZE
			   : w->tail == TEXT ? IN_TEXT
					     : AT_FLAG;
		return 0;
	}
	return -1;
}

static int word_byte(struct memcached_meta_scanner *s, char byte)
{
	if (byte == ' ' || byte == '\r')
		return word_done(s, byte);
	return memcached_line_word(&s->line, byte) ? 0 : -1;
}

static int begin_reply(struct memcached_meta_scanner *s, char byte)
{
	s->digits = 0;
	s->number = 0;
	s->opaque = 0;
	s->has_opaque = false;
	memcached_line_begin(&s->line);
	s->state = IN_WORD;
	/* No line begins with a word's end; word_done would find no word of that name. */
	return word_byte(s, byte);
}

static int size_byte(struct memcached_meta_scanner *s, char byte)
{
	uint32_t value = (uint32_t)(uint8_t)(byte - '0');

	if (s->digits > 0 && (byte == ' ' || byte == '\r')) {
		s->state = byte == ' ' ? AT_FLAG : AT_LF;
		return 0;
	}
	if (value > 9 || s->digits == SIZE_DIGITS || s->number > (MEMCACHED_VALUE_BYTES - value) / 10)
		return -1;
	s->digits++;
	s->number = s->number * 10 + value;
	return 0;
}

static int begin_flag(struct memcached_meta_scanner *s, char byte)
{
	if ((uint8_t)byte <= ' ')
		return -1;
	s->state = IN_FLAG;
	if (byte == 'O') {
		s->state = IN_OPAQUE;
		s->has_opaque = true;
		s->opaque = MEMCACHED_META_NO_NUMBER;
		s->digits = 0;
	}
	return 0;
}

static int flag_byte(struct memcached_meta_scanner *s, char byte)
{
	uint32_t value = (uint32_t)(uint8_t)(byte - '0');

	if (byte == ' ' || byte == '\r') {
		s->state = byte == ' ' ? AT_FLAG : AT_LF;
		return 0;
	}
	if ((uint8_t)byte <= ' ')
		return -1;
	if (s->state != IN_OPAQUE)
		return 0;
	if (value > 9 || s->digits == MEMCACHED_META_OPAQUE_DIGITS) {
		s->opaque = MEMCACHED_META_NO_NUMBER;
		s->state = IN_FLAG;
		return 0;
	}
	s->opaque = s->digits == 0 ? value : s->opaque * 10 + value;
	s->digits++;
	return 0;
}

/* Skips the flags at `p`, up to the CR after them, if they are complete; else NULL. */
static inline const char *whole_flags(struct memcached_meta_scanner *s, const char *p, const char *end)
{
	uint64_t n;
	const char *first;

	s->has_opaque = false;
	s->opaque = 0;
	while (p < end && *p == ' ') {
		first = ++p;
		if (p < end && *p == 'O') {
			for (n = 0, p++; p < end && (uint8_t)(*p - '0') < 10 &&
					 p - first <= MEMCACHED_META_OPAQUE_DIGITS;)
				n = n * 10 + (uint8_t)(*p++ - '0');
			if (p - first == 1 || (p < end && (uint8_t)*p > ' '))
				return NULL;
			s->has_opaque = true;
			s->opaque = n;
		} else {
			while (p < end && (uint8_t)*p > ' ')
				p++;
		}
		if (p == first)
			return NULL;
	}
	return p < end && *p == '\r' ? p : NULL;
}

/* Skips a reply that is complete at *at. False: nothing was changed that matters. */
static inline bool whole_reply(struct memcached_meta_scanner *s, const char **at, const char *end)
{
	const char *p = *at, *line = p, *first;
	uint32_t size = 0;

	if (end - p < 4)
		return false;
	switch (p[0]) {
	case 'V':
		if (p[1] != 'A' || p[2] != ' ')
			return false;
		for (first = p += 3; p < end && (uint8_t)(*p - '0') < 10 && p - first < 9; p++)
			size = size * 10 + (uint8_t)(*p - '0');
		if (p == first)
			return false;
		s->type = MEMCACHED_META_VALUE;
		break;
	case 'H':
		if (p[1] != 'D')
			return false;
		s->type = MEMCACHED_META_DONE;
		p += 2;
		break;
	case 'E':
		if (p[1] != 'N')
			return false;
		s->type = MEMCACHED_META_MISS;
		p += 2;
		break;
	case 'N':
		if (p[1] != 'F' && p[1] != 'S')
			return false;
		s->type = p[1] == 'F' ? MEMCACHED_META_NOT_FOUND : MEMCACHED_META_NOT_STORED;
		p += 2;
		break;
	default:
		return false;
	}
	p = whole_flags(s, p, end);
	if (!p || end - p < 2 || p[1] != '\n' || p - line > MEMCACHED_LINE)
		return false;
	p += 2;
	if (s->type == MEMCACHED_META_VALUE) {
		if ((size_t)(end - p) < (size_t)size + 2 || p[size] != '\r' || p[size + 1] != '\n')
			return false;
		p += size + 2;
	}
	*at = p;
	return true;
}
_Static_assert(MEMCACHED_VALUE_BYTES > 999999999, "a length of 9 digits needs no further check");

/* Processes one byte, or as many as the state can handle at once. 1: reply complete, 0: continue, -1: not a
 * reply. *at is advanced, except for a byte that is refused. */
static int scan_state(struct memcached_meta_scanner *s, const char **at, const char *end)
{
	const char *p = *at;
	int result = 0;

	/* Skips the line up to its CR and counts the bytes of its text. */
	if (s->state != AT_REPLY && s->state != IN_TEXT && s->state < AT_LF && *p != '\r' &&
	    s->line.bytes == MEMCACHED_LINE)
		return -1;
	switch ((enum state)s->state) {
	case AT_REPLY:
		result = begin_reply(s, *p);
		s->line.bytes++;
		break;
	case IN_WORD:
		result = word_byte(s, *p);
		s->line.bytes++;
		break;
	case IN_TEXT:
		if (!memcached_line_text(&s->line, at, end, s->type == MEMCACHED_META_ERROR))
			return -1;
		if (*at == end)
			return 0;
		p = *at;
		s->state = AT_LF;
		break;
	case IN_SIZE:
		result = size_byte(s, *p);
		s->line.bytes++;
		break;
	case AT_FLAG:
		result = begin_flag(s, *p);
		s->line.bytes++;
		break;
	case IN_FLAG:
	case IN_OPAQUE:
		result = flag_byte(s, *p);
		s->line.bytes++;
		break;
	case AT_LF:
		result = *p == '\n' ? line_done(s) : -1;
		break;
	case IN_DATA: {
		uint64_t have = (uint64_t)(end - p);
		uint32_t skip = have < s->number ? (uint32_t)have : s->number;

		s->number -= skip;
		*at = p + skip;
		if (s->number == 0)
			s->state = AT_DATA_CR;
		return 0;
	}
	case AT_DATA_CR:
		result = *p == '\r' ? 0 : -1;
		s->state = AT_DATA_LF;
		break;
	case AT_DATA_LF:
		result = *p == '\n' ? reply_done(s) : -1;
		break;
	}
	if (result >= 0)
		*at = p + 1;
	return result;
}

int memcached_meta_scan(struct memcached_meta_scanner *s, const char **at, const char *end)
{
	int result = 0;

	if (s->state == AT_REPLY && *at < end && whole_reply(s, at, end))
		return reply_done(s);
	while (*at < end && result == 0)
		result = scan_state(s, at, end);
	return result;
}

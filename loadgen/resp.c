/* SPDX-License-Identifier: MIT */
/* The reply scanner, in two layers: elements that lie whole in the buffer, as nearly all do, are stepped
 * over at once; what is cut, or odd, goes byte by byte through states. */
#include "resp.h"

#include <string.h>

enum state {
	AT_TYPE, /* zero: a scanner at rest */
	IN_LINE,
	IN_NUMBER,
	AT_LF,	 /* after a line's or number's CR */
	IN_BULK, /* number: bytes to skip before the closing CRLF */
	AT_BULK_CR,
	AT_BULK_LF,
};

/* Redis' own limit of a bulk is proto-max-bulk-len, 512 MB unless raised; past 4 GB it's no length. */
#define LARGEST_NUMBER UINT32_MAX

/* An element is complete: 1 when the whole reply is. */
static int element_done(struct resp_scanner *s)
{
	s->state = AT_TYPE;
	while (s->depth > 0) {
		if (--s->left[s->depth - 1] > 0)
			return 0;
		s->depth--;
	}
	return 1;
}

/* What follows a type byte's line: 1 reply complete, 0 more to come, -1 not a reply. */
static int line_done(struct resp_scanner *s)
{
	bool nil = s->negative && s->number == 1;

	switch (s->type) {
	case '$':
		if (s->negative && !nil)
			return -1;
		if (nil) {
			if (s->depth == 0)
				s->kind = RESP_NIL;
			return element_done(s);
		}
		s->state = s->number ? IN_BULK : AT_BULK_CR;
		return 0;
	case '*':
		if (s->negative && !nil)
			return -1;
		if (nil && s->depth == 0)
			s->kind = RESP_NIL;
		if (nil || s->number == 0)
			return element_done(s);
		if (s->depth == RESP_DEPTH)
			return -1;
		s->left[s->depth++] = (uint32_t)s->number;
		s->state = AT_TYPE;
		return 0;
	default:
		return element_done(s);
	}
}

/* Skips a line's text up to its CR, keeping a top-level error's first word. Returns the CR or end. */
static const char *skip_text(struct resp_scanner *s, const char *p, const char *end)
{
	const char *cr = memchr(p, '\r', (size_t)(end - p));
	const char *stop = cr ? cr : end;

	if (s->type == '-' && s->depth == 0) {
		for (; p < stop && s->word_length < RESP_WORD - 1; p++) {
			if (*p == ' ') {
				s->word_length = RESP_WORD;
				break;
			}
			s->word[s->word_length++] = *p;
			s->word[s->word_length] = 0;
		}
		/* The blank between them is where the rest begins. */
		for (; p < stop && s->rest_length < RESP_REST - 1; p++) {
			if (s->rest_length == 0 && *p == ' ')
				continue;
			s->rest[s->rest_length++] = *p;
			s->rest[s->rest_length] = 0;
		}
	}
	return stop;
}

static int begin_element(struct resp_scanner *s, char type)
{
	if (s->depth == 0)
		s->kind = (uint8_t)type;
	s->type = (uint8_t)type;
	s->number = 0;
	s->digits = 0;
	s->negative = false;
	switch (type) {
	case '-':
		if (s->depth == 0) {
			s->word_length = s->rest_length = 0;
			s->word[0] = s->rest[0] = 0;
		}
		/* fall through */
	case '+':
		s->state = IN_LINE;
		return 0;
	case ':':
	case '$':
	case '*':
		s->state = IN_NUMBER;
		return 0;
	default:
		return -1;
	}
}

static int number_byte(struct resp_scanner *s, char byte)
{
	if (byte == '-' && s->digits == 0 && !s->negative) {
		s->negative = true;
		return 0;
	}
	if (byte == '\r' && s->digits > 0) {
		s->state = AT_LF;
		return 0;
	}
	if (byte < '0' || byte > '9' || s->digits == 20)
		return -1;
	s->digits++;
	s->number = s->number * 10 + (uint64_t)(byte - '0');
	/* An integer may be anything that 64 bits hold; lengths and counts may not. */
	return s->type != ':' && s->number > LARGEST_NUMBER ? -1 : 0;
}

/* The number between a type byte and CRLF at `p`, if all of it is here and in good order. Returns what is
 * behind it, or NULL for the byte-by-byte way to look at. At most 9 digits: no overflow to think of. */
static inline const char *whole_number(const char *p, const char *end, uint32_t *number)
{
	const char *first = p;
	uint32_t n = 0;

	while (p < end && (uint8_t)(*p - '0') < 10 && p - first < 9)
		n = n * 10 + (uint32_t)(*p++ - '0');
	if (p == first || end - p < 2 || p[0] != '\r' || p[1] != '\n')
		return NULL;
	*number = n;
	return p + 2;
}

/* Steps over a string, integer or "+" line that lies whole at *at. False: nothing was done. */
static inline bool whole_element(const char **at, const char *end)
{
	const char *p = *at, *q;
	uint32_t n;

	switch (*p) {
	case '$':
		q = whole_number(p + 1, end, &n);
		if (!q || (size_t)(end - q) < (size_t)n + 2 || q[n] != '\r' || q[n + 1] != '\n')
			return false;
		*at = q + n + 2;
		return true;
	case ':':
		q = whole_number(p + 1, end, &n);
		if (!q)
			return false;
		*at = q;
		return true;
	case '+':
		if (end - p >= 5 && memcmp(p, "+OK\r\n", 5) == 0) {
			*at = p + 5;
			return true;
		}
		q = memchr(p, '\r', (size_t)(end - p));
		if (!q || end - q < 2 || q[1] != '\n')
			return false;
		*at = q + 2;
		return true;
	default:
		return false;
	}
}

/* One byte, or as many as the state can take at once. 1: reply complete, 0: go on, -1: no reply. *at is
 * moved but for a byte that is refused. */
static int scan_state(struct resp_scanner *s, const char **at, const char *end)
{
	const char *p = *at;
	int result = 0;

	switch ((enum state)s->state) {
	case AT_TYPE:
		result = begin_element(s, *p);
		break;
	case IN_LINE:
		*at = p = skip_text(s, p, end);
		if (p == end)
			return 0;
		s->state = AT_LF;
		break;
	case IN_NUMBER:
		result = number_byte(s, *p);
		break;
	case AT_LF:
		result = *p == '\n' ? line_done(s) : -1;
		break;
	case IN_BULK: {
		uint64_t have = (uint64_t)(end - p), skip = have < s->number ? have : s->number;

		s->number -= skip;
		*at = p + skip;
		if (s->number == 0)
			s->state = AT_BULK_CR;
		return 0;
	}
	case AT_BULK_CR:
		result = *p == '\r' ? 0 : -1;
		s->state = AT_BULK_LF;
		break;
	case AT_BULK_LF:
		result = *p == '\n' ? element_done(s) : -1;
		break;
	}
	if (result >= 0)
		*at = p + 1;
	return result;
}

int resp_scan(struct resp_scanner *s, const char **at, const char *end)
{
	int result = 0;

	while (*at < end && result == 0) {
		const char type = **at;

		if (s->state == AT_TYPE && whole_element(at, end)) {
			if (s->depth > 0) {
				result = element_done(s);
				continue;
			}
			s->kind = (uint8_t)type;
			return 1;
		}
		result = scan_state(s, at, end);
	}
	return result;
}

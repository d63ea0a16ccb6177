/* SPDX-License-Identifier: MIT */
/* The reply scanner: a state per byte class, and short cuts for replies that lie whole in the buffer. */
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
static int element_done(struct resp_scan *s)
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
static int line_done(struct resp_scan *s)
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
static const char *skip_text(struct resp_scan *s, const char *p, const char *end)
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
	}
	return stop;
}

static int begin_element(struct resp_scan *s, char type)
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
			s->word_length = 0;
			s->word[0] = 0;
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

static int number_byte(struct resp_scan *s, char byte)
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

static int scan_bytes(struct resp_scan *s, const char **at, const char *end)
{
	const char *p = *at;
	int result = 0;

	while (p < end && result == 0) {
		switch ((enum state)s->state) {
		case AT_TYPE:
			result = begin_element(s, *p);
			break;
		case IN_LINE:
			p = skip_text(s, p, end);
			if (p == end) {
				*at = p;
				return 0;
			}
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
			p += skip;
			if (s->number == 0)
				s->state = AT_BULK_CR;
			continue;
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
			p++;
	}
	*at = p;
	return result;
}

int resp_scan(struct resp_scan *s, const char **at, const char *end)
{
	const char *p = *at;

	/* "+OK" and "$<up to 5 digits>" of which all is here, by far the most replies. */
	if (s->state == AT_TYPE && s->depth == 0 && end - p >= 5) {
		if (*p == '$') {
			uint32_t length = (uint32_t)(p[1] - '0');
			const char *q = p + 2;

			while (length < 10000 && q < end && (uint8_t)(*q - '0') < 10)
				length = length * 10 + (uint32_t)(*q++ - '0');
			if (p[1] >= '0' && p[1] <= '9' && end - q >= (ptrdiff_t)length + 4 && q[0] == '\r' &&
			    q[1] == '\n' && q[length + 2] == '\r' && q[length + 3] == '\n') {
				s->kind = '$';
				*at = q + length + 4;
				return 1;
			}
		} else if (memcmp(p, "+OK\r\n", 5) == 0) {
			s->kind = '+';
			*at = p + 5;
			return 1;
		}
	}
	return scan_bytes(s, at, end);
}

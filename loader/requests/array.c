/* SPDX-License-Identifier: MIT */
/* Redis requests as arrays of strings, in two layers. Nearly all arguments are complete in the buffer and
 * taken at once; split or unusual ones are processed byte by byte in states. */
#include "scan_state.h"

enum {
	NEGATIVE_DIGITS = 18, /* the value of a negative count does not matter */
};

/* One byte of a number, which ends with CR. The server accepts neither leading zeros nor "-0". */
static int number_byte(struct scanner *s, uint8_t byte, uint64_t limit)
{
	if (byte == '\r' && s->digits > 0) {
		s->state++;
		return SCAN_CONTINUES;
	}
	if (byte == '-' && s->state == SCAN_ARRAY_COUNT && s->digits == 0 && !s->negative) {
		s->negative = true;
		return SCAN_CONTINUES;
	}
	if (byte < '0' || byte > '9' || (s->digits > 0 && s->left == 0) ||
	    (s->negative && (s->digits == NEGATIVE_DIGITS || (s->digits == 0 && byte == '0'))))
		return SCAN_REFUSED;
	s->digits++;
	s->left = s->left * 10 + (uint64_t)(byte - '0');
	return s->left > limit && !s->negative ? SCAN_REFUSED : SCAN_CONTINUES;
}

static int count_done(struct scanner *s)
{
	if (s->negative || s->left == 0)
		return SCAN_NOTHING;
	s->count = (uint32_t)s->left;
	s->state = SCAN_ARGUMENT;
	return SCAN_CONTINUES;
}

static int argument_done(struct scanner *s)
{
	scan_end_argument(s); /* not a line, so any command is accepted */
	s->state = SCAN_ARGUMENT;
	return s->arguments == s->count ? SCAN_COMPLETE : SCAN_CONTINUES;
}

/* The length between "$" and CRLF at `p`, if it is complete and valid. Returns the position after it, or NULL
 * for byte-by-byte processing. At most 8 digits, so it is below the limits. */
static inline const uint8_t *whole_number(const uint8_t *p, const uint8_t *end, uint32_t *number)
{
	const uint8_t *first = p;
	uint32_t n = 0;

	while (p < end && (uint8_t)(*p - '0') < 10 && p - first < 8)
		n = n * 10 + (uint32_t)(*p++ - '0');
	if (p == first || (*first == '0' && p - first > 1) || end - p < 2 || p[0] != '\r' || p[1] != '\n')
		return NULL;
	*number = n;
	return p + 2;
}

/* Takes an argument that is complete at *at. False: nothing was done. */
static inline bool whole_argument(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	const uint8_t *p = *at;
	uint32_t n;

	if (*p != '$' || !(p = whole_number(p + 1, end, &n)))
		return false;
	if ((size_t)(end - p) < (size_t)n + 2 || p[n] != '\r' || p[n + 1] != '\n')
		return false;
	scan_begin_argument(s);
	scan_argument_bytes(s, p, n);
	*at = p + n + 2;
	return true;
}

/* Processes one byte, or as many as the state can handle at once. *at is advanced, except for a byte that is
 * refused. */
static int scan_byte(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	const uint8_t byte = **at;
	int result = SCAN_CONTINUES;

	switch (s->state) {
	case SCAN_BEGIN:
		s->state = SCAN_ARRAY_COUNT;
		break;
	case SCAN_ARRAY_COUNT:
		result = number_byte(s, byte, SCAN_ARGUMENTS);
		break;
	case SCAN_ARRAY_COUNT_LF:
		result = byte == '\n' ? count_done(s) : SCAN_REFUSED;
		break;
	case SCAN_ARGUMENT:
		if (byte != '$')
			return SCAN_REFUSED;
		s->left = s->digits = 0;
		s->state = SCAN_ARGUMENT_LENGTH;
		break;
	case SCAN_ARGUMENT_LENGTH:
		result = number_byte(s, byte, SCAN_VALUE);
		break;
	case SCAN_ARGUMENT_LENGTH_LF:
		if (byte != '\n')
			return SCAN_REFUSED;
		scan_begin_argument(s);
		s->state = s->left > 0 ? SCAN_IN_VALUE : SCAN_VALUE_CR;
		break;
	case SCAN_IN_VALUE:
		if (scan_value(s, at, end))
			s->state = SCAN_VALUE_CR;
		return SCAN_CONTINUES;
	case SCAN_VALUE_CR:
		result = byte == '\r' ? SCAN_CONTINUES : SCAN_REFUSED;
		s->state = SCAN_VALUE_LF;
		break;
	default: /* SCAN_VALUE_LF */
		result = byte == '\n' ? argument_done(s) : SCAN_REFUSED;
	}
	if (result != SCAN_REFUSED)
		++*at;
	return result;
}

/* The state of a scanner at the beginning of an array. False: nothing was done. */
static inline bool whole_count(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	uint32_t n;
	const uint8_t *p = whole_number(*at + 1, end, &n);

	if (!p || n == 0)
		return false;
	s->count = n;
	s->state = SCAN_ARGUMENT;
	*at = p;
	return true;
}

int scan_array(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	int result = SCAN_CONTINUES;

	if (s->state == SCAN_BEGIN)
		whole_count(s, at, end);
	while (*at < end && result == SCAN_CONTINUES)
		if (s->state == SCAN_ARGUMENT && whole_argument(s, at, end))
			result = argument_done(s);
		else
			result = scan_byte(s, at, end);
	return result;
}

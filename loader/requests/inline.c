/* SPDX-License-Identifier: MIT */
/* Inline commands of Redis: a line of words, which may be quoted as in the server's sdssplitargs(). Escapes
 * count as they are written: they matter for finding the end of a word only. A proxy may forward inline
 * commands as arrays; unless they have escapes, their hashes are equal. */
#include "scan_state.h"

static bool is_blank(uint8_t byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* A byte of a word itself. */
static int word_byte(struct scanner *s, uint8_t byte, enum scan_word_state next)
{
	if (s->arguments == 0 && (byte <= ' ' || byte > '~'))
		return SCAN_REFUSED;
	scan_argument_bytes(s, &byte, 1);
	s->word_state = (uint8_t)next;
	return SCAN_CONTINUES;
}

static int word_done(struct scanner *s)
{
	s->word_state = SCAN_BETWEEN_WORDS;
	return scan_end_argument(s);
}

static int unquoted_byte(struct scanner *s, uint8_t byte)
{
	if (byte == ' ' || byte == '\t' || byte == '\r')
		return word_done(s);
	if (byte != '"' && byte != '\'')
		return word_byte(s, byte, SCAN_IN_WORD);
	s->word_state = byte == '"' ? SCAN_IN_DOUBLE_QUOTES : SCAN_IN_SINGLE_QUOTES;
	return SCAN_CONTINUES;
}

static int line_done(struct scanner *s)
{
	if (s->word_state == SCAN_IN_WORD || s->word_state == SCAN_AFTER_QUOTES) {
		if (word_done(s) < 0)
			return SCAN_REFUSED;
	} else if (s->word_state != SCAN_BETWEEN_WORDS) {
		return SCAN_REFUSED;
	}
	return s->arguments > 0 ? SCAN_COMPLETE : SCAN_NOTHING;
}

static int line_byte(struct scanner *s, uint8_t byte)
{
	if (byte == '\n')
		return line_done(s);
	if (byte == 0 || s->count == SCAN_LINE)
		return SCAN_REFUSED;
	s->count++;
	switch ((enum scan_word_state)s->word_state) {
	case SCAN_BETWEEN_WORDS:
		if (is_blank(byte))
			return SCAN_CONTINUES;
		scan_begin_argument(s);
		/* fall through */
	case SCAN_IN_WORD:
		return unquoted_byte(s, byte);
	case SCAN_IN_DOUBLE_QUOTES:
		if (byte == '"')
			s->word_state = SCAN_AFTER_QUOTES;
		else
			return word_byte(s, byte,
					 byte == '\\' ? SCAN_AFTER_BACKSLASH : SCAN_IN_DOUBLE_QUOTES);
		return SCAN_CONTINUES;
	case SCAN_AFTER_BACKSLASH:
		return word_byte(s, byte, SCAN_IN_DOUBLE_QUOTES);
	case SCAN_IN_SINGLE_QUOTES:
		if (byte == '\'')
			s->word_state = SCAN_AFTER_QUOTES;
		else
			return word_byte(s, byte,
					 byte == '\\' ? SCAN_AFTER_SINGLE_BACKSLASH : SCAN_IN_SINGLE_QUOTES);
		return SCAN_CONTINUES;
	case SCAN_AFTER_SINGLE_BACKSLASH:
		return word_byte(s, byte, byte == '\\' ? SCAN_AFTER_SINGLE_BACKSLASH : SCAN_IN_SINGLE_QUOTES);
	default: /* SCAN_AFTER_QUOTES */
		break;
	}
	return is_blank(byte) ? word_done(s) : SCAN_REFUSED;
}

int scan_inline(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	int result = SCAN_CONTINUES;

	while (*at < end && result == SCAN_CONTINUES) {
		result = line_byte(s, **at);
		if (result != SCAN_REFUSED)
			++*at;
	}
	return result;
}

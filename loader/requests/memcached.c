/* SPDX-License-Identifier: MIT */
/* memcached's text and meta commands: a line of words, and for some a block of data after it. Whether the
 * server reads that block depends on the line being valid, so that is checked as the server does. */
#include "scan_state.h"

enum {
	KEY_BYTES = 250,
	META_KEY = 1, /* the word that is a meta command's key */
};

static bool is_delimiter(uint8_t byte)
{
	return byte == ' ' || byte == '\r' || byte == '\n';
}

/* The length of a data block, a number of at most SCAN_WORD digits. */
static void data_length(struct scanner *s)
{
	uint64_t number = 0;
	size_t i = s->word[0] == '+' && s->length > 1 ? 1 : 0;

	if (s->length > SCAN_WORD)
		return;
	for (; i < s->length; i++) {
		if (s->word[i] < '0' || s->word[i] > '9')
			return;
		number = number * 10 + (uint64_t)(s->word[i] - '0');
		if (number > SCAN_DATA)
			return;
	}
	s->left = number;
	s->option |= SCAN_DATA_LENGTH;
}

void scan_memcached_option(struct scanner *s)
{
	bool meta = s->properties & COMMAND_META, data = s->properties & COMMAND_DATA;
	uint64_t length_word = meta ? 2 : 4;

	s->option &= (uint8_t)~SCAN_NOREPLY;
	if (s->arguments == 1 && s->length > KEY_BYTES)
		s->option |= SCAN_KEY_TOO_LONG;
	if (!s->gathers)
		return;
	if (data && s->arguments == length_word)
		data_length(s);
	else if (meta && s->arguments > META_KEY && s->word[0] == 'q')
		s->flags |= SCANNED_NO_REPLY;
	else if (scan_is_word(s, "noreply"))
		s->option |= SCAN_NOREPLY;
}

/* Whether the server reads a block of data after this line. */
static bool data_follows(const struct scanner *s)
{
	uint64_t words = s->arguments;

	if (!(s->properties & COMMAND_DATA) ||
	    (s->option & (SCAN_DATA_LENGTH | SCAN_KEY_TOO_LONG)) != SCAN_DATA_LENGTH)
		return false;
	if (s->properties & COMMAND_META)
		return true;
	if (s->properties & COMMAND_CAS)
		words--;
	return words == 5 || words == 6;
}

static int line_done(struct scanner *s)
{
	/* Without a word, the server answers ERROR. */
	if (s->arguments == 0)
		s->command = COMMAND_OTHER;
	if (s->properties & COMMAND_NOREPLY && s->option & SCAN_NOREPLY)
		s->flags |= SCANNED_NO_REPLY;
	if (!data_follows(s))
		return SCAN_COMPLETE;
	s->hash = scan_mix(s->hash, s->left);
	s->state = s->left > 0 ? SCAN_IN_DATA : SCAN_DATA_CR;
	return SCAN_CONTINUES;
}

/* A line whose protocol is not known follows that of memcached up to the first byte that does not. Returns
 * whether it still does. */
static bool like_memcached(struct scanner *s, uint8_t byte)
{
	unsigned command;

	if (!s->undecided || (byte >= 'a' && byte <= 'z') || byte == '_')
		return true;
	s->undecided = false;
	if (is_delimiter(byte) && s->length <= SCAN_WORD) {
		command = commands_find((const char *)s->word, s->length);
		s->memcached = commands_flags(command) & COMMAND_MEMCACHED;
	} else {
		s->memcached = false;
	}
	return s->memcached;
}

static int delimiter(struct scanner *s, uint8_t byte)
{
	if (byte != '\n' && (s->word_state == SCAN_AFTER_CR || s->count == SCAN_LINE))
		return SCAN_REFUSED;
	if (!(s->properties & COMMAND_MANY_KEYS))
		s->count++;
	if (s->word_state == SCAN_IN_WORD && scan_end_argument(s) < 0)
		return SCAN_REFUSED;
	s->word_state = byte == '\r' ? SCAN_AFTER_CR : SCAN_BETWEEN_WORDS;
	return byte == '\n' ? line_done(s) : SCAN_CONTINUES;
}

/* The bytes of a word up to a delimiter; of the first word one byte. *at is after those that were used. */
static int word_bytes(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	const uint8_t *p = *at, *stop = p + 1;
	size_t room = s->properties & COMMAND_MANY_KEYS ? SIZE_MAX : SCAN_LINE - s->count;
	bool first = s->arguments == 0;

	if (s->word_state == SCAN_AFTER_CR || room == 0 || (first && (*p <= ' ' || *p > '~')))
		return SCAN_REFUSED;
	while (!first && stop < end && (size_t)(stop - p) < room && !is_delimiter(*stop))
		stop++;
	if (first && *p >= 'A' && *p <= 'Z')
		s->capital = true;
	if (s->word_state == SCAN_BETWEEN_WORDS)
		scan_begin_argument(s);
	s->word_state = SCAN_IN_WORD;
	scan_argument_bytes(s, p, (size_t)(stop - p));
	if (!(s->properties & COMMAND_MANY_KEYS))
		s->count += (uint32_t)(stop - p);
	*at = stop;
	return SCAN_CONTINUES;
}

int scan_line(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	int result = SCAN_CONTINUES;

	while (*at < end && result == SCAN_CONTINUES && s->state == SCAN_IN_LINE) {
		if (!s->memcached || !like_memcached(s, **at))
			return scan_inline(s, at, end);
		if (!is_delimiter(**at)) {
			result = word_bytes(s, at, end);
			continue;
		}
		result = delimiter(s, **at);
		if (result != SCAN_REFUSED)
			++*at;
	}
	return result;
}

int scan_memcached_data(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	while (*at < end) {
		if (s->state == SCAN_IN_DATA) {
			if (scan_value(s, at, end))
				s->state = SCAN_DATA_CR;
			continue;
		}
		if (**at != (s->state == SCAN_DATA_CR ? '\r' : '\n'))
			return SCAN_REFUSED;
		++*at;
		if (s->state == SCAN_DATA_LF)
			return SCAN_COMPLETE;
		s->state = SCAN_DATA_LF;
	}
	return SCAN_CONTINUES;
}

/* SPDX-License-Identifier: MIT */
/* memcached's binary requests: a header of 24 bytes, gathered because it cannot be interpreted in parts, and
 * a body of extras, key and value. */
#include "scan_state.h"

/* Offsets in the header, from memcached's doc/protocol-binary.txt. */
enum {
	MAGIC_AT = 0,
	OPCODE_AT = 1,
	KEY_LENGTH_AT = 2,
	EXTRAS_LENGTH_AT = 4,
	BODY_LENGTH_AT = 8,
	LENGTHS_END = 12, /* all lengths are known from here on */
	HEADER_BYTES = 24,
};

_Static_assert((int)HEADER_BYTES <= (int)SCAN_WORD, "a header is gathered in the scanner's word");

enum { REQUEST_MAGIC = 0x80 };

static uint32_t number(const uint8_t *at, size_t bytes)
{
	uint32_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n = n << 8 | at[i];
	return n;
}

/* Whether the lengths in a header are valid: key and extras are parts of the body. */
static bool lengths_fit(const uint8_t *header)
{
	uint32_t body = number(header + BODY_LENGTH_AT, 4);

	return body <= SCAN_BODY && number(header + KEY_LENGTH_AT, 2) + header[EXTRAS_LENGTH_AT] <= body;
}

static int header_done(struct scanner *s)
{
	const uint8_t *header = s->word;
	uint32_t key = number(header + KEY_LENGTH_AT, 2);

	s->command = (uint8_t)commands_of_opcode(header[OPCODE_AT]);
	if (commands_opcode_quiet(header[OPCODE_AT]))
		s->flags |= SCANNED_NO_REPLY;
	s->left = number(header + BODY_LENGTH_AT, 4);
	s->extras = header[EXTRAS_LENGTH_AT];
	s->key_left = (uint8_t)(key < SCAN_KEY ? key : SCAN_KEY);
	s->hash = scan_mix(s->hash, header[OPCODE_AT]);
	s->hash = scan_mix(s->hash, (uint64_t)s->extras << 48 | (uint64_t)key << 32 | s->left);
	s->arguments = 1;
	s->state = SCAN_IN_BODY;
	return s->left > 0 ? SCAN_CONTINUES : SCAN_COMPLETE;
}

static int header_byte(struct scanner *s, uint8_t byte)
{
	if (s->length == MAGIC_AT && byte != REQUEST_MAGIC)
		return SCAN_REFUSED;
	s->word[s->length] = byte;
	if (s->length == LENGTHS_END - 1 && !lengths_fit(s->word))
		return SCAN_REFUSED;
	return ++s->length == HEADER_BYTES ? header_done(s) : SCAN_CONTINUES;
}

static int body_bytes(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	size_t have = (size_t)(end - *at);
	uint32_t extras = have < s->extras ? (uint32_t)have : s->extras;

	*at += extras;
	s->extras -= extras;
	s->left -= extras;
	return s->extras == 0 && scan_value(s, at, end) ? SCAN_COMPLETE : SCAN_CONTINUES;
}

int scan_memcached_binary(struct scanner *s, const uint8_t **at, const uint8_t *end)
{
	while (*at < end && s->state == SCAN_IN_HEADER) {
		int result = header_byte(s, **at);

		if (result != SCAN_REFUSED)
			++*at;
		if (result != SCAN_CONTINUES)
			return result;
	}
	return *at < end ? body_bytes(s, at, end) : SCAN_CONTINUES;
}

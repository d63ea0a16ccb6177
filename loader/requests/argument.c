/* SPDX-License-Identifier: MIT */
/* What a request's words say: its command, and the few options that change when or whether the server
 * replies. */
#include "scan_state.h"

void scan_gather(struct scanner *s, const uint8_t *bytes, size_t count)
{
	bool upper = s->arguments == 0 || !s->memcached;

	for (size_t i = 0; i < count && s->length + i < SCAN_WORD; i++) {
		bool lower_case = bytes[i] >= 'a' && bytes[i] <= 'z';

		s->word[s->length + i] = upper && lower_case ? bytes[i] - 'a' + 'A' : bytes[i];
	}
}

void scan_hash_key(struct scanner *s, const uint8_t *bytes, size_t count)
{
	size_t i = 0;

	if (count > s->key_left)
		count = s->key_left;
	s->key_left = (uint8_t)(s->key_left - count);
	while (i < count) {
		uint64_t chunk;

		if (s->chunk_bytes == 0 && count - i >= sizeof(chunk)) {
			memcpy(&chunk, bytes + i, sizeof(chunk));
			s->hash = scan_mix(s->hash, le64toh(chunk));
			i += sizeof(chunk);
			continue;
		}
		s->chunk |= (uint64_t)bytes[i++] << 8 * s->chunk_bytes++;
		if (s->chunk_bytes == sizeof(chunk))
			scan_end_chunk(s);
	}
}

int scan_command_word(struct scanner *s)
{
	size_t bytes = s->length < SCAN_WORD ? s->length : SCAN_WORD;
	unsigned flags;

	s->command =
	    (uint8_t)(s->length <= SCAN_WORD ? commands_find((const char *)s->word, bytes) : COMMAND_OTHER);
	flags = commands_flags(s->command);
	/* memcached's commands are lower case. */
	if (s->memcached && (s->capital || !(flags & COMMAND_MEMCACHED)))
		s->command = COMMAND_OTHER;
	if (s->lost && s->state == SCAN_IN_LINE && (!s->memcached || s->command == COMMAND_OTHER))
		return SCAN_REFUSED;
	if (s->command != COMMAND_OTHER)
		s->properties =
		    (uint16_t)(s->memcached ? flags & ~(unsigned)COMMAND_REDIS : flags & COMMAND_REDIS);
	if (s->properties & COMMAND_BLOCKING)
		s->flags |= SCANNED_BLOCKING;
	if (s->properties & COMMAND_PUSHES)
		s->flags |= SCANNED_PUSHES;
	if (s->properties & COMMAND_MULTI)
		s->flags |= SCANNED_MULTI;
	if (s->properties & (COMMAND_EXEC | COMMAND_RESET))
		s->flags |= SCANNED_EXEC;
	for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
		uint64_t chunk;

		memcpy(&chunk, s->word + i, sizeof(chunk));
		s->hash = scan_mix(s->hash, le64toh(chunk));
	}
	return SCAN_CONTINUES;
}

static void client_option(struct scanner *s)
{
	if (s->arguments == 1) {
		s->option = scan_is_word(s, "REPLY")	  ? SCAN_CLIENT_REPLY
			    : scan_is_word(s, "TRACKING") ? SCAN_CLIENT_TRACKING
							  : SCAN_OPTIONS_END;
		return;
	}
	if (s->option == SCAN_CLIENT_TRACKING && scan_is_word(s, "ON"))
		s->flags |= SCANNED_TRACKING;
	if (s->option == SCAN_CLIENT_REPLY)
		s->option = scan_is_word(s, "ON")     ? SCAN_CLIENT_REPLY_ON
			    : scan_is_word(s, "OFF")  ? SCAN_CLIENT_REPLY_OFF
			    : scan_is_word(s, "SKIP") ? SCAN_CLIENT_REPLY_SKIP
						      : SCAN_OPTIONS_END;
	else
		s->option = SCAN_OPTIONS_END;
}

void scan_option_word(struct scanner *s)
{
	if (s->properties & COMMAND_CLIENT) {
		client_option(s);
	} else if (s->arguments == 1 && scan_is_word(s, "GROUP")) {
		s->option = SCAN_READ_GROUP;
	} else if (s->option == SCAN_READ_GROUP && s->arguments <= 3) {
		return; /* any name, even BLOCK */
	} else if (scan_is_word(s, "BLOCK")) {
		s->flags |= SCANNED_BLOCKING;
		s->option = SCAN_OPTIONS_END;
	} else if (scan_is_word(s, "STREAMS")) {
		s->option = SCAN_OPTIONS_END;
	}
}

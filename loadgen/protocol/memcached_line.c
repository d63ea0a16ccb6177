/* SPDX-License-Identifier: MIT */
/* The word and text of a line, byte by byte: off the scanners' fast path. */
#include "memcached_line.h"

#include <stdio.h>
#include <string.h>

void memcached_line_begin(struct memcached_line *l)
{
	l->bytes = 0;
	l->word_length = l->explanation_length = 0;
	l->word[0] = l->explanation[0] = 0;
}

bool memcached_line_word(struct memcached_line *l, char byte)
{
	if (!((byte >= 'A' && byte <= 'Z') || byte == '_') || l->word_length == MEMCACHED_WORD - 1)
		return false;
	l->word[l->word_length++] = byte;
	l->word[l->word_length] = 0;
	return true;
}

bool memcached_line_text(struct memcached_line *l, const char **at, const char *end, bool keep)
{
	const char *p = *at;
	size_t have = (size_t)(end - p), room = MEMCACHED_LINE - l->bytes;
	const char *cr = memchr(p, '\r', have <= room ? have : room + 1);
	size_t length = cr ? (size_t)(cr - p) : have <= room ? have : room;

	l->bytes = (uint16_t)(l->bytes + length);
	*at = p + length;
	if (keep) {
		for (; p < *at && l->explanation_length < MEMCACHED_EXPLANATION - 1; p++)
			l->explanation[l->explanation_length++] = *p;
		l->explanation[l->explanation_length] = 0;
	}
	return cr || have <= room;
}

void memcached_line_error(const struct memcached_line *l, char *out, size_t size)
{
	snprintf(out, size, "%s%s%s%s", l->word, l->explanation_length ? " " : "", l->explanation,
		 l->explanation_length == MEMCACHED_EXPLANATION - 1 ? "..." : "");
}

bool memcached_line_out_of_memory(const struct memcached_line *l)
{
	static const char text[] = "out of memory";

	return strcmp(l->word, "SERVER_ERROR") == 0 && strncmp(l->explanation, text, sizeof(text) - 1) == 0;
}

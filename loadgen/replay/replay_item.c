/* SPDX-License-Identifier: MIT */
/* Words point into one buffer, which is made as large as the command may need before the first word is
 * written. It is reused for later commands. */
#include "replay_item.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS 1000000000ull
enum { SECONDS_DIGITS = 10 };

void replay_reader_init(struct replay_reader *r, const char *begin, const char *end)
{
	*r = (struct replay_reader){
	    .begin = begin, .at = begin, .end = end, .line = 1, .second_ns = REPLAY_NO_TIME};
}

void replay_reader_free(struct replay_reader *r)
{
	free(r->text.at);
	free(r->words);
	r->text = (struct replay_text){0};
	r->words = NULL;
}

int replay_damage(struct replay_reader *r, const char *at, bool cut, const char *why)
{
	r->at = at;
	r->cut = cut;
	snprintf(r->why, sizeof(r->why), "%s", why);
	return -1;
}

bool replay_words_begin(struct replay_reader *r, size_t bytes)
{
	struct replay_text *t = &r->text;
	size_t room = bytes + bytes / 2 + 64;

	r->word_count = 0;
	t->length = 0;
	/* At once: words point into it, so it must not move while they are gathered. */
	if (bytes > t->room || !t->at) {
		free(t->at);
		t->at = malloc(room);
		t->room = t->at ? room : 0;
		if (!t->at) {
			replay_damage(r, r->at, false, "not enough memory");
			return false;
		}
	}
	return true;
}

bool replay_words_add(struct replay_reader *r, const char *at, size_t length)
{
	if (r->word_count == r->word_room) {
		uint32_t room = r->word_room ? r->word_room * 2 : 16;
		struct replay_word *grown =
		    r->word_count == REPLAY_WORDS_MAX ? NULL : realloc(r->words, room * sizeof(*grown));

		if (!grown) {
			replay_damage(r, r->at, false, "more words than a command can have");
			return false;
		}
		r->words = grown;
		r->word_room = room;
	}
	r->words[r->word_count++] = (struct replay_word){at, length};
	return true;
}

bool replay_read_seconds(const char **at, const char *end, uint64_t *ns)
{
	const char *p = *at, *from = p;
	uint64_t value = 0, unit = SECOND_NS;

	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		if (p - from == SECONDS_DIGITS)
			return false;
		value = value * 10 + (uint64_t)(*p - '0');
	}
	if (p == from)
		return false;
	value *= SECOND_NS;
	if (p < end && *p == '.') {
		for (p++; p < end && *p >= '0' && *p <= '9'; p++) {
			unit /= 10;
			value += (uint64_t)(*p - '0') * unit;
		}
	}
	*ns = value;
	*at = p;
	return true;
}

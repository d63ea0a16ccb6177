/* SPDX-License-Identifier: MIT */
/* The checks of the readers of recordings. See check_replay.h. */
#include "check_replay.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUTS = 12, ITEMS_MAX = 4096 };

struct seen {
	size_t count;
	uint64_t hash[ITEMS_MAX];
	size_t end[ITEMS_MAX]; /* where in the input each command ends */
};

static void fail(const char *what, size_t at)
{
	fprintf(stderr, "byte %zu: %s\n", at, what);
	abort();
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t length)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ p[i]) * 0x100000001b3u;
	return (hash ^ length) * 0x100000001b3u;
}

static uint64_t hash_item(const struct replay_item *item)
{
	uint64_t h = mix(0xcbf29ce484222325u, &item->time_ns, sizeof(item->time_ns));

	h = mix(h, &item->database, sizeof(item->database));
	h = mix(h, &item->scripted, sizeof(item->scripted));
	h = mix(h, item->client.at, item->client.length);
	for (uint32_t i = 0; i < item->word_count; i++)
		h = mix(h, item->words[i].at, item->words[i].length);
	return mix(h, item->wire.at, item->wire.length);
}

static bool inside(const struct replay_word *w, const char *begin, const char *end)
{
	return w->at >= begin && w->at <= end && w->length <= (size_t)(end - w->at);
}

static void check_words(const struct replay_reader *r, const struct replay_item *item)
{
	const char *text = r->text.at, *text_end = text ? text + r->text.length : NULL;

	if (item->word_count == 0)
		fail("a command has no words", (size_t)(r->at - r->begin));
	for (uint32_t i = 0; i < item->word_count; i++)
		if (!inside(&item->words[i], r->begin, r->end) &&
		    !(text && inside(&item->words[i], text, text_end)))
			fail("a word outside of input and reader's text", (size_t)(r->at - r->begin));
}

static void read_all(int (*next)(struct replay_reader *, struct replay_item *), const uint8_t *data,
		     size_t size, struct seen *seen)
{
	char *copy = malloc(size ? size : 1);
	struct replay_reader r;
	struct replay_item item;
	const char *before;
	int more = 1;

	if (!copy)
		exit(3);
	memcpy(copy, data, size);
	replay_reader_init(&r, copy, copy + size);
	seen->count = 0;
	while (seen->count < ITEMS_MAX && (before = r.at, more = next(&r, &item)) > 0) {
		if (r.at <= before || r.at > r.end)
			fail("a command takes no bytes, or more than there are", (size_t)(before - copy));
		check_words(&r, &item);
		seen->hash[seen->count] = hash_item(&item);
		seen->end[seen->count++] = (size_t)(r.at - copy);
	}
	if (more < 0 && (!r.why[0] || r.at < copy || r.at > copy + size))
		fail("damage without a reason or a position", (size_t)(r.at - copy));
	if (more == 0 && r.at != r.end)
		fail("it ended before the input's end", (size_t)(r.at - copy));
	replay_reader_free(&r);
	free(copy);
}

void fuzz_check_reader(int (*next)(struct replay_reader *, struct replay_item *), const uint8_t *data,
		       size_t size)
{
	static struct seen whole, part;

	read_all(next, data, size, &whole);
	for (size_t cut = 0; cut < CUTS; cut++) {
		size_t length = size * cut / CUTS;

		read_all(next, data, length, &part);
		for (size_t i = 0; i < whole.count && whole.end[i] < length; i++)
			if (i >= part.count || part.hash[i] != whole.hash[i])
				fail("a cut after it changes a command", whole.end[i]);
	}
}

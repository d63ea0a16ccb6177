/* SPDX-License-Identifier: MIT */
/* The scanner has already found the reply well-formed, so its content needs no further validation. */
#include "reply_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "loadgen/protocol/reply.h"

struct reply_buffer *reply_buffer_new(const struct workload *w)
{
	struct reply_buffer *g = calloc(1, sizeof(*g));
	bool cursor = false;

	for (uint32_t i = 0; i < w->operation_count; i++)
		cursor |= w->operations[i].cursor;
	if (g && cursor && !(g->cursors = calloc(w->operation_count, sizeof(*g->cursors)))) {
		free(g);
		g = NULL;
	}
	return g;
}

void reply_buffer_free(struct reply_buffer *g)
{
	if (g) {
		free(g->reply.at);
		free(g->cursors);
	}
	free(g);
}

void reply_buffer_add(struct reply_buffer *g, const char *from, const char *to)
{
	size_t count = (size_t)(to - from);

	if (g->overflow || g->reply.length + count > REPLY_BUFFER_BYTES_MAX ||
	    !bytes_reserve(&g->reply, count)) {
		g->overflow = true;
		return;
	}
	bytes_add(&g->reply, from, count);
}

void reply_buffer_reset(struct reply_buffer *g)
{
	g->reply.length = 0;
	g->overflow = false;
}

int64_t reply_buffer_check_value(const struct reply_buffer *g, const struct workload *w, uint64_t key)
{
	uint64_t seed = value_seed_of_key(key);
	uint32_t wanted = value_size(&w->values, seed), common;
	size_t at, length;
	int64_t wrong;

	if (g->overflow || !protocol_of(w->protocol)->find_value(g->reply.at, g->reply.length, &at, &length))
		return -2;
	common = length < wanted ? (uint32_t)length : wanted;
	wrong = value_check(&w->values, seed, 0, g->reply.at + at, common);
	return wrong >= 0 || length == wanted ? wrong : (int64_t)common;
}

uint64_t reply_buffer_number(const struct reply_buffer *g)
{
	return g->reply.length > 1 ? reply_number(g->reply.at + 1, g->reply.at + g->reply.length) : 0;
}

/* "*2", a string with the cursor, and an array. */
void reply_buffer_take_cursor(struct reply_buffer *g, uint32_t operation, uint64_t key)
{
	static const char head[] = "*2\r\n$";
	const char *p = g->reply.at;
	struct scan_cursor *c = &g->cursors[operation];
	char *after;
	size_t length;

	c->length = 0;
	c->key = key;
	if (g->overflow || g->reply.length < sizeof(head) + 4 || memcmp(p, head, sizeof(head) - 1) != 0)
		return;
	length = strtoull(p + sizeof(head) - 1, &after, 10);
	p = after + 2;
	if (length == 0 || length > sizeof(c->text) || (length == 1 && *p == '0'))
		return;
	memcpy(c->text, p, length);
	c->length = (uint32_t)length;
}

void reply_buffer_take_keys(struct reply_buffer *g)
{
	const char *p = g->reply.at, *end = p + g->reply.length;
	uint64_t count;
	char *after;

	g->captured = 0;
	if (g->overflow || g->reply.length < 4 || *p != '*')
		return;
	count = strtoull(p + 1, &after, 10);
	p = after + 2;
	for (uint64_t k = 0; k < count && k < YCSB_SCAN_MAX && p < end && *p == '$'; k++) {
		size_t length = strtoull(p + 1, &after, 10);

		p = after + 2;
		g->captured_at[g->captured] = (uint32_t)(p - g->reply.at);
		g->captured_length[g->captured++] = (uint32_t)length;
		p += length + 2;
	}
}

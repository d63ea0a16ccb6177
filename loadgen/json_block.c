/* SPDX-License-Identifier: MIT */
/* An object is gathered in memory: a block is written as a whole or not at all. */
#include "json_block.h"

#include <stdlib.h>

bool block_begin(struct json_block *b)
{
	*b = (struct json_block){0};
	b->json = (struct json){open_memstream(&b->text, &b->size), true};
	if (!b->json.to)
		return false;
	json_begin(&b->json, NULL, '{');
	return true;
}

void block_end(struct json_block *b, struct ft_writer *to, enum ft_block_kind kind)
{
	json_end(&b->json, '}');
	if (fclose(b->json.to) == 0)
		ft_writer_json(to, kind, b->text);
	free(b->text);
}

bool note_begin(struct json_block *n, uint64_t t_ns, const char *kind)
{
	if (!block_begin(n))
		return false;
	json_count(&n->json, "t_ns", t_ns);
	json_text(&n->json, "kind", kind);
	return true;
}

void note_end(struct json_block *n, struct ft_writer *to)
{
	block_end(n, to, FT_BLOCK_NOTE);
}

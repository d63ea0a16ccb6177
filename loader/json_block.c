/* SPDX-License-Identifier: MIT */
/* See json_block.h. */
#include "json_block.h"

#include <stdlib.h>

void write_json_block(struct ft_writer *w, enum ft_block_kind kind, json_t *object)
{
	char *text = json_dumps(object, JSON_COMPACT);
	if (text)
		ft_writer_json(w, kind, text);
	free(text);
	json_decref(object);
}

json_t *json_text(const char *text, size_t length)
{
	json_t *s = json_stringn(text, length);
	return s ? s : json_string("?");
}

/* SPDX-License-Identifier: MIT */
/* JSON objects that go into a recording as blocks of their own: notes of what happened when, and others. */
#ifndef FORKTAIL_LOADGEN_JSON_BLOCK_H
#define FORKTAIL_LOADGEN_JSON_BLOCK_H

#include <stddef.h>

#include "json.h"
#include "recording/recording.h"

struct json_block {
	struct json json; /* of the object's members */
	char *text;
	size_t size;
};

/* Begins an object; false (and nothing to end) when memory is short. */
bool block_begin(struct json_block *b);
void block_end(struct json_block *b, struct ft_writer *to, enum ft_block_kind kind);

/* The same for a note, which begins with its time and kind. */
bool note_begin(struct json_block *n, uint64_t t_ns, const char *kind);
void note_end(struct json_block *n, struct ft_writer *to);

#endif

/* SPDX-License-Identifier: MIT */
/* JSON objects as blocks of a recording. */
#ifndef FORKTAIL_LOADER_JSON_BLOCK_H
#define FORKTAIL_LOADER_JSON_BLOCK_H

#include <jansson.h>
#include <stddef.h>

#include "recording/recording.h"

/* Writes an object and gives up the reference to it. */
void write_json_block(struct ft_writer *w, enum ft_block_kind kind, json_t *object);

/* A string of any bytes: JSON wants UTF-8, and "?" stands for what isn't. */
json_t *json_text(const char *text, size_t length);

#endif

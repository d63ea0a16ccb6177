/* SPDX-License-Identifier: MIT */
/* JSON written by C programs, using jansson: objects as blocks of a recording, and what jansson leaves to its
 * users: text of any bytes (a path may be anything), numbers that are not finite, and adding members in one
 * line. */
#ifndef FORKTAIL_RECORDING_JSON_BLOCK_H
#define FORKTAIL_RECORDING_JSON_BLOCK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes an object and takes its reference. NULL, jansson's result without memory, is not written. */
void write_json_block(struct ft_writer *w, enum ft_block_kind kind, json_t *object);

/* The same for objects that records refer to by a number: written at once, before buffered records, which
 * cannot need it yet. The buffered records are not flushed for it, so that blocks stay large. */
void write_json_definition(struct ft_writer *w, enum ft_block_kind kind, json_t *object);

/* A note of an event: an object that begins with its time and kind. */
json_t *json_note(uint64_t t_ns, const char *kind);
void write_json_note(struct ft_writer *w, json_t *note);

/* One line of text, which the caller frees, with ten digits of each number that isn't whole. Takes the
 * reference. NULL: no memory. */
char *json_line(json_t *value);

/* A string. JSON needs UTF-8: other text is written like visible_text, an invalid byte as \xff. */
json_t *json_text(const char *text, size_t length);

/* Adds a member to an object, or, with NULL for its name, a value to the end of an array. */
void json_put_text(json_t *in, const char *name, const char *text);
void json_put_count(json_t *in, const char *name, uint64_t value);
void json_put_number(json_t *in, const char *name, double value); /* 0 for what is not finite */
void json_put_truth(json_t *in, const char *name, bool value);
bool json_put(json_t *in, const char *name, json_t *value); /* takes the reference; false: it was not added */
/* The new object or array, which belongs to `in`; NULL: no memory. */
json_t *json_put_object(json_t *in, const char *name);
json_t *json_put_array(json_t *in, const char *name);

#ifdef __cplusplus
}
#endif
#endif

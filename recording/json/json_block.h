/* SPDX-License-Identifier: MIT */
/* JSON that programs in C write, by jansson: objects as blocks of a recording, and what jansson leaves to its
 * users: text of any bytes (a path may be anything), numbers that are none, and members by their name in one
 * line. */
#ifndef FORKTAIL_RECORDING_JSON_JSON_BLOCK_H
#define FORKTAIL_RECORDING_JSON_JSON_BLOCK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes an object and gives up the reference to it. NULL, as jansson has it when memory is short, is not
 * written. */
void write_json_block(struct ft_writer *w, enum ft_block_kind kind, json_t *object);

/* The same for what records refer to by a number: written at once, ahead of the records that wait to be, none
 * of which can need it. They are not written for its sake, so that blocks stay large. */
void write_json_definition(struct ft_writer *w, enum ft_block_kind kind, json_t *object);

/* A note of what happened when: an object that begins with its time and kind. */
json_t *json_note(uint64_t t_ns, const char *kind);
void write_json_note(struct ft_writer *w, json_t *note);

/* One line of text, to be freed, with ten digits of each number that isn't whole; gives up the reference.
 * NULL when memory is short. */
char *json_line(json_t *value);

/* A string. JSON wants UTF-8: text that isn't is written as visible_text has it, a byte as \xff. */
json_t *json_text(const char *text, size_t length);

/* Put a member into an object, or, with NULL for its name, a value at the end of an array. */
void json_put_text(json_t *in, const char *name, const char *text);
void json_put_count(json_t *in, const char *name, uint64_t value);
void json_put_number(json_t *in, const char *name, double value); /* 0 for what is not finite */
void json_put_truth(json_t *in, const char *name, bool value);
bool json_put(json_t *in, const char *name, json_t *value); /* gives up the reference; false: it is not in */
/* The new object or array, which belongs to `in`; NULL when memory is short. */
json_t *json_put_object(json_t *in, const char *name);
json_t *json_put_array(json_t *in, const char *name);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* Writing JSON: values one after the other, commas and escapes as they have to be. */
#ifndef FORKTAIL_LOADGEN_JSON_H
#define FORKTAIL_LOADGEN_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct json {
	FILE *to;
	bool first; /* nothing yet in the object or array that's open */
};

/* Every call takes the value's name, or NULL inside an array and at the top. */
void json_begin(struct json *j, const char *name, char bracket); /* '{' or '[' */
void json_end(struct json *j, char bracket);			 /* '}' or ']' */
void json_text(struct json *j, const char *name, const char *value);
void json_count(struct json *j, const char *name, uint64_t value);
void json_number(struct json *j, const char *name, double value);
void json_truth(struct json *j, const char *name, bool value);

#ifdef __cplusplus
}
#endif
#endif

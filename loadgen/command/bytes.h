/* SPDX-License-Identifier: MIT */
/* A growing buffer for requests, greetings, gathered replies and files. */
#ifndef FORKTAIL_LOADGEN_BYTES_H
#define FORKTAIL_LOADGEN_BYTES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bytes {
	char *at;
	size_t length, room;
};

/* Makes space for `more` bytes at the end. False: out of memory. */
bool bytes_reserve(struct bytes *b, size_t more);
void bytes_add(struct bytes *b, const void *from, size_t count); /* the space must exist */
/* Makes the space itself. False: out of memory. */
bool bytes_add_text(struct bytes *b, const char *text);
/* Adds a file's content. Returns 0, or a negative errno; -EFBIG: it has more than `limit` bytes. */
int bytes_add_file(struct bytes *b, const char *path, size_t limit);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* A growing buffer: requests, greetings and gathered replies are made in it. */
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

/* Room for `more` bytes behind the last. False: out of memory. */
bool bytes_reserve(struct bytes *b, size_t more);
void bytes_add(struct bytes *b, const void *from, size_t count); /* the room is there */
/* Makes the room itself. False: out of memory. */
bool bytes_add_text(struct bytes *b, const char *text);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* The buffer doubles, so that formatting a request soon needs no more allocations. */
#include "bytes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bytes_reserve(struct bytes *b, size_t more)
{
	size_t room = b->room ? b->room : 256;
	char *grown;

	if (b->length + more <= b->room)
		return true;
	while (room < b->length + more)
		room *= 2;
	grown = realloc(b->at, room);
	if (!grown)
		return false;
	b->at = grown;
	b->room = room;
	return true;
}

void bytes_add(struct bytes *b, const void *from, size_t count)
{
	memcpy(b->at + b->length, from, count);
	b->length += count;
}

bool bytes_add_text(struct bytes *b, const char *text)
{
	size_t n = strlen(text);

	if (!bytes_reserve(b, n))
		return false;
	bytes_add(b, text, n);
	return true;
}

int bytes_add_file(struct bytes *b, const char *path, size_t limit)
{
	FILE *f = fopen(path, "r");
	size_t before = b->length, got = 1;
	int rc = f ? 0 : -errno;

	while (rc == 0 && got > 0) {
		if (!bytes_reserve(b, 1)) {
			rc = -ENOMEM;
			break;
		}
		got = fread(b->at + b->length, 1, b->room - b->length, f);
		b->length += got;
		if (ferror(f))
			rc = -errno;
		else if (b->length - before > limit)
			rc = -EFBIG;
	}
	if (f)
		fclose(f);
	return rc;
}

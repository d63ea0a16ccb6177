/* SPDX-License-Identifier: MIT */
/* Arrays that grow, of any type: for the C programs. */
#ifndef FORKTAIL_COMMON_GROW_H
#define FORKTAIL_COMMON_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Makes space for `count` items in an array, at least doubling it when it is too small. `array` is the
 * address of the pointer to the items. That pointer is read and written with memcpy, because its type differs
 * by caller. False: out of memory; nothing changed. */
static inline bool grow_to(void *array, size_t *room, size_t count, size_t item_bytes)
{
	size_t more = *room ? 2 * *room : 16;
	void *items;

	if (count <= *room)
		return true;
	if (more < count)
		more = count;
	memcpy(&items, array, sizeof(items));
	items = realloc(items, more * item_bytes);
	if (!items)
		return false;
	memcpy(array, &items, sizeof(items));
	*room = more;
	return true;
}

/* The same for one more item than `count`. */
static inline bool grow(void *array, size_t *room, size_t count, size_t item_bytes)
{
	return grow_to(array, room, count + 1, item_bytes);
}
#endif

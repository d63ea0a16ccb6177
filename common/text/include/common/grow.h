/* SPDX-License-Identifier: MIT */
/* Arrays that grow, of any type: for the C programs. */
#ifndef FORKTAIL_COMMON_GROW_H
#define FORKTAIL_COMMON_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Makes space for `count` items in an array, at least doubling it when it is too small. `array` is the
 * address of the pointer to it, which is copied, because it points to another type than void. False without
 * memory: the array is unchanged. */
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

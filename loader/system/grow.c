/* SPDX-License-Identifier: MIT */
/* The pointer is copied, not cast to void *, because it points to another type. */
#include "loader/system/grow.h"

#include <stdlib.h>
#include <string.h>

bool grow(void *array, size_t *room, size_t count, size_t item_bytes)
{
	void *items;
	size_t more = *room ? 2 * *room : 16;

	if (count < *room)
		return true;
	memcpy(&items, array, sizeof(items));
	items = realloc(items, more * item_bytes);
	if (!items)
		return false;
	memcpy(array, &items, sizeof(items));
	*room = more;
	return true;
}

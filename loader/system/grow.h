/* SPDX-License-Identifier: MIT */
/* Arrays that grow. */
#ifndef FORKTAIL_LOADER_GROW_H
#define FORKTAIL_LOADER_GROW_H

#include <stdbool.h>
#include <stddef.h>

/* Makes space for one more item in an array of `count`, by doubling it when it is full. `array` is the
 * address of the pointer to it. False without memory: the array is unchanged. */
bool grow(void *array, size_t *room, size_t count, size_t item_bytes);

#endif

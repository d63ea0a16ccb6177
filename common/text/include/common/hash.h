/* SPDX-License-Identifier: MIT */
/* uthash, for structs with a member `UT_hash_handle hh`. Short memory does not end the program: what could
 * not be added is in no table, as hash_added says. */
#ifndef FORKTAIL_COMMON_HASH_H
#define FORKTAIL_COMMON_HASH_H

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)
#include <uthash.h>

/* Whether HASH_ADD added the element. */
#define hash_added(element) ((element)->hh.tbl != NULL)

/* Empties a table whose elements are `type` *, each in memory of malloc. */
#define hash_free_all(type, head)                                                                            \
	do {                                                                                                 \
		type *element_, *next_;                                                                      \
		HASH_ITER(hh, head, element_, next_)                                                         \
		{                                                                                            \
			HASH_DEL(head, element_);                                                            \
			free(element_);                                                                      \
		}                                                                                            \
	} while (0)
#endif

/* SPDX-License-Identifier: MIT */
/* Which slot a request belongs to: found from its command's key before it is formatted, since the slot
 * chooses the connection. The word that is the key has to follow from the request's key number alone: text,
 * __key__, __key_number__ and __tag__. */
#ifndef FORKTAIL_LOADGEN_ROUTE_H
#define FORKTAIL_LOADGEN_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/workload/workload.h"

struct link;
struct nodes;

/* Finds out where the key is in each command of the workload, and which commands only read: by asking a Redis
 * (COMMAND INFO, COMMAND GETKEYS; `link`), else (NULL: memcached, or a server that won't say) the key is
 * taken to be the second word and get, gets, gat and mg to read. `several`: keys choose servers. To be called
 * before workload_prepare: it may turn an __int__ in a key into
 * __key_number__, so that the key is known when its server is chosen. 0, or -EINVAL and a sentence: a key
 * isn't known before it's drawn. */
int route_prepare(struct workload *w, struct link *link, bool several, char *error, size_t size);

/* Whether the key in this word follows from the request's key number; what is drawn at random is turned into
 * that. */
bool route_settle_word(struct command *c, uint32_t word);

/* The name of a request's key, in `scratch`. False: out of memory. The step's route is ROUTE_KEY. */
bool route_name(const struct workload *w, const struct step *s, uint64_t key, struct bytes *scratch);

/* The slot of a request, as `n` has slots. ROUTE_ANYWHERE: it has no key. */
#define ROUTE_ANYWHERE UINT32_MAX
uint32_t route_slot(const struct nodes *n, const struct workload *w, const struct step *s, uint64_t key,
		    struct bytes *scratch);

#endif

/* SPDX-License-Identifier: MIT */
/* Which slot a request belongs to: found from its command's key before it is formatted, because the slot
 * determines the connection. The key must follow from the request's key number alone: text, __key__,
 * __key_number__ and __tag__. */
#ifndef FORKTAIL_LOADGEN_ROUTE_H
#define FORKTAIL_LOADGEN_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/workload/workload.h"

struct link;
struct nodes;

/* Finds the key of each command of the workload, and which commands only read, by asking a Redis server
 * (COMMAND INFO, COMMAND GETKEYS; `link`). Without a link (NULL: memcached, or a server that does not answer
 * this), the key is assumed to be the second word, and get, gets, gat and mg to read. `several`: keys choose
 * servers. Call it before workload_prepare: it may turn an __int__ in a key into __key_number__, so that the
 * key is known when its server is chosen. Returns 0, or -EINVAL and a sentence if a key is not known before
 * it is drawn. */
int route_prepare(struct workload *w, struct link *link, bool several, char *error, size_t size);

/* Whether the key in this word follows from the request's key number. A random number in it is replaced by
 * the key number. */
bool route_settle_word(struct command *c, uint32_t word);

/* Writes the name of a request's key to `scratch`. False: out of memory. The step's route must be
 * ROUTE_KEY. */
bool route_name(const struct workload *w, const struct step *s, uint64_t key, struct bytes *scratch);

/* Returns the slot of a request for the deployment `n`. ROUTE_ANYWHERE: it has no key. */
#define ROUTE_ANYWHERE UINT32_MAX
uint32_t route_slot(const struct nodes *n, const struct workload *w, const struct step *s, uint64_t key,
		    struct bytes *scratch);

#endif

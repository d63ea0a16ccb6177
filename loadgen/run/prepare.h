/* SPDX-License-Identifier: MIT */
/* Stores the data that redis-benchmark's tests need, on the single server, or on those of several that own
 * the keys. */
#ifndef FORKTAIL_LOADGEN_PREPARE_H
#define FORKTAIL_LOADGEN_PREPARE_H

#include "loadgen/cluster/nodes.h"
#include "loadgen/server/connect.h"
#include "suite.h"

/* A list of PREPARED_LIST elements, or `keys` sets of PREPARED_MEMBERS members. `several` NULL: all on `one`.
 * Returns 0, or -1 and a sentence. */
int prepare_servers(struct server *one, struct nodes *several, enum preparation what, uint64_t keys,
		    char *error, size_t size);

#endif

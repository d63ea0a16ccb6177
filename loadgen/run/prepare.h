/* SPDX-License-Identifier: MIT */
/* What redis-benchmark's tests need to find, put on the one server, or on those of several that the keys
 * belong to. */
#ifndef FORKTAIL_LOADGEN_PREPARE_H
#define FORKTAIL_LOADGEN_PREPARE_H

#include "loadgen/cluster/nodes.h"
#include "loadgen/server/connect.h"
#include "suite.h"

/* A list of PREPARED_LIST elements, or `keys` sets of PREPARED_MEMBERS members; `several` NULL: they go to
 * `one`. 0, or -1 and a sentence. */
int prepare_servers(struct server *one, struct nodes *several, enum preparation what, uint64_t keys,
		    char *error, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/* The first and last words of a load recording: who made it, of what, and how it ended. */
#ifndef FORKTAIL_LOADGEN_MANIFEST_H
#define FORKTAIL_LOADGEN_MANIFEST_H

#include "loadgen/cluster/nodes.h"
#include "loadgen/options/options.h"
#include "loadgen/server/connect.h"
#include "loadgen/workload/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `server` is the one that was asked about itself; `nodes` NULL: there are no others. JSON text, to be freed;
 * NULL when memory is short. There is no secret in it: none is ever in argv. */
char *manifest_make(const struct options *o, const struct server *server, const struct nodes *nodes,
		    const struct workload *w, int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif

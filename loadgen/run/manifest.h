/* SPDX-License-Identifier: MIT */
/* The first and last block of a load recording: which program made it, for which servers, and how it
 * ended. */
#ifndef FORKTAIL_LOADGEN_MANIFEST_H
#define FORKTAIL_LOADGEN_MANIFEST_H

#include "loadgen/cluster/nodes.h"
#include "loadgen/options/options.h"
#include "loadgen/server/connect.h"
#include "loadgen/workload/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `server` is the server that was asked for its information; `nodes` NULL: there are no others. JSON text,
 * which the caller frees. NULL: out of memory. It contains no password, because none is ever in argv. */
char *manifest_make(const struct options *o, const struct server *server, const struct nodes *nodes,
		    const struct workload *w, int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif

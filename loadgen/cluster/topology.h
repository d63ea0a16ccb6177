/* SPDX-License-Identifier: MIT */
/* Learning who serves what: before the load, and again and again while it runs.
 *
 * A thread of its own does it, with plain blocking questions that have time-outs, so that load threads only
 * read the table of nodes. It asks once a second, and every 20 ms while something is wrong: a node that can't
 * be reached, a redirect. A failover is seen that much later than it happened, at most.
 *
 * Cluster: CLUSTER SLOTS, of any node that answers. Sentinel: get-master-addr-by-name and the replicas, of
 * the first Sentinel that answers, and ROLE of the new primary before it's believed. A primary alone: its
 * ROLE names the replicas.
 */
#ifndef FORKTAIL_LOADGEN_TOPOLOGY_H
#define FORKTAIL_LOADGEN_TOPOLOGY_H

#include <stddef.h>

#include "nodes.h"
#include "recording/recording.h"

struct topology;

/* Fills the table from the servers that the options name. 0, or -1 and a sentence; a cluster that doesn't
 * serve all slots is one that can be loaded, and is said on stderr. */
int topology_learn(struct nodes *n, char *error, size_t size);

/* Keeps the table up to date; what changes goes into the log as notes of kind "topology" (NULL: no log). Does
 * nothing for servers that know nothing of each other. Negative errno. */
int topology_start(struct topology **out, struct nodes *n, struct ft_writer *log);
void topology_stop(struct topology *t);

#endif

/* SPDX-License-Identifier: MIT */
/* Learns which server serves which keys: before the load, and repeatedly during it. A separate thread asks
 * with blocking calls and time-outs, so that load threads only read the table of nodes. It asks once per
 * second, and every 20 ms while something is wrong: a node that can't be reached, or a redirect. A failover
 * is noticed at most that much later. Cluster: CLUSTER SLOTS from any node that answers. Sentinel:
 * get-master-addr-by-name and the replicas from the first Sentinel that answers, confirmed by ROLE of the new
 * primary. A primary alone: its ROLE names the replicas. */
#ifndef FORKTAIL_LOADGEN_TOPOLOGY_H
#define FORKTAIL_LOADGEN_TOPOLOGY_H

#include <stddef.h>

#include "nodes.h"
#include "recording/recording.h"

struct topology;

/* Fills the table from the servers in the options. Returns 0, or -1 and a sentence. A cluster that doesn't
 * serve all slots can be loaded, with a warning on stderr. */
int topology_learn(struct nodes *n, char *error, size_t size);

/* Keeps the table up to date. Changes are logged as notes of kind "topology" (NULL: no log). Does nothing for
 * independent servers. Returns a negative errno on failure. */
int topology_start(struct topology **out, struct nodes *n, struct ft_writer *log);
void topology_stop(struct topology *t);

#endif

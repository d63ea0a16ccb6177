/* SPDX-License-Identifier: MIT */
/* The servers that a process is a client of. A proxy that is idle in the middle of a request waits for one of
 * them; if that one is not recorded, its address is all that is known. */
#ifndef FORKTAIL_LOADER_PEERS_H
#define FORKTAIL_LOADER_PEERS_H

#include <jansson.h>
#include <sys/types.h>

enum { PEERS_MAX = 64 };

/* Where the process' outgoing TCP connections lead to, each address once, at most PEERS_MAX:
 * ["10.0.0.7:6379", "[fd00::1]:6379"]. A connection is outgoing if no socket of the network namespace listens
 * on its local port. */
json_t *peer_addresses(pid_t pid);

#endif

/* SPDX-License-Identifier: MIT */
/* The servers that a process is a client of. A proxy that is idle in the middle of a request waits for one of
 * them; if that one is not recorded, its address is all that is known. If another host's recorder saw the
 * proxy's requests, the local ends of the connections say that these are the proxy's. */
#ifndef FORKTAIL_LOADER_PEERS_H
#define FORKTAIL_LOADER_PEERS_H

#include <jansson.h>
#include <sys/types.h>

enum { PEERS_MAX = 64, LOCAL_ENDS_MAX = 1024 };

/* Puts the process' outgoing TCP connections: "peers", where they lead to, each address once and at most
 * PEERS_MAX (["10.0.0.7:6379", "[fd00::1]:6379"]), and "local_ends", the address and port of this end of
 * each, at most LOCAL_ENDS_MAX. A connection is outgoing if no socket of the network namespace listens on its
 * local port. */
void peers_put(json_t *object, pid_t pid);

#endif

/* SPDX-License-Identifier: MIT */
/* The addresses of a process' network namespace. In a run on several hosts they identify the server that a
 * load generator used: ports and process ids are the same on many hosts. */
#ifndef FORKTAIL_LOADER_ADDRESSES_H
#define FORKTAIL_LOADER_ADDRESSES_H

#include <jansson.h>
#include <sys/types.h>

/* ["10.0.0.1", "fd00::1"], in the format of inet_ntop(), each once, without loopback addresses. Empty if
 * /proc does not show them. */
json_t *addresses_of(pid_t pid);

/* The same from files like /proc/PID/net/fib_trie and if_inet6. Either file may be missing. */
json_t *addresses_read(const char *fib_trie, const char *if_inet6);

#endif

/* SPDX-License-Identifier: MIT */
/* The addresses of a process' network namespace. Of a run on several hosts they tell which server it was that
 * a load generator talked to: ports and process ids are the same on many. */
#ifndef FORKTAIL_LOADER_ADDRESSES_H
#define FORKTAIL_LOADER_ADDRESSES_H

#include <jansson.h>
#include <sys/types.h>

/* ["10.0.0.1", "fd00::1"], as inet_ntop() writes them, without the loopback's; each once. Empty where /proc
 * doesn't tell. */
json_t *addresses_of(pid_t pid);

/* The same from files like /proc/PID/net/fib_trie and if_inet6, either of which may not be there. */
json_t *addresses_read(const char *fib_trie, const char *if_inet6);

#endif

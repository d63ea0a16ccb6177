/* SPDX-License-Identifier: MIT */
/* The recorder's affinity and priority: other CPUs than the watched processes, and a lower priority. */
#ifndef FORKTAIL_LOADER_AFFINITY_H
#define FORKTAIL_LOADER_AFFINITY_H

#include <stddef.h>
#include <sys/types.h>

/* Restricts this thread, and everything it starts later, to CPUs that no thread of these processes may use.
 * Without such CPUs, as on a host without pinning, nothing changes. */
void affinity_avoid(const pid_t *pids, size_t count);

/* Lowers the priority of this thread and of everything it starts later. Returns 0 or a negative errno. */
int priority_lower(void);

#endif

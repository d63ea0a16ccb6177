/* SPDX-License-Identifier: MIT */
/* The recorder's CPUs and priority: other CPUs than those of the processes it watches, and a lower priority.
 */
#ifndef FORKTAIL_LOADER_AFFINITY_H
#define FORKTAIL_LOADER_AFFINITY_H

#include <stddef.h>
#include <sys/types.h>

/* Leaves this thread, and what it starts from here on, the CPUs that no thread of these processes may run on.
 * It stays where it is when there are none such, as on a host where nothing is pinned. */
void affinity_avoid(const pid_t *pids, size_t count);

/* This thread's, and of what it starts from here on. 0 or a negative errno. */
int priority_lower(void);

#endif

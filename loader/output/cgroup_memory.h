/* SPDX-License-Identifier: MIT */
/* What the kernel counts of the memory limits of targets' cgroups. */
#ifndef FORKTAIL_LOADER_CGROUP_MEMORY_H
#define FORKTAIL_LOADER_CGROUP_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/output/proc_metrics.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cgroup_memory;

/* The smallest limit of this process' cgroups, in bytes; UINT64_MAX: none. */
uint64_t cgroup_memory_limit(const char *proc);

/* Returns NULL without a hierarchy with the memory controller, or without memory. `proc` is where proc is
 * mounted. */
struct cgroup_memory *cgroup_memory_open(struct proc_metrics *m, const char *proc);

/* Writes the counters of the cgroups of these processes, and of their ancestors, as series (proc_metrics.h).
 * `c` may be NULL. Called ten times per second: it does nothing until 1,000 times the CPU time of its last
 * work has passed. */
void cgroup_memory_look(struct cgroup_memory *c, const pid_t *pids, size_t count, uint64_t now_ns);
void cgroup_memory_close(struct cgroup_memory *c);

#ifdef __cplusplus
}
#endif

#endif

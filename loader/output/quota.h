/* SPDX-License-Identifier: MIT */
/* CPU quotas (CFS bandwidth) of the cgroups of targets, read from user space. */
#ifndef FORKTAIL_LOADER_QUOTA_H
#define FORKTAIL_LOADER_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/output/proc_metrics.h"
#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct quotas;

/* Returns NULL without quotas: this host has no cgroups with a CPU controller, or no memory is left. `proc`
 * is where proc is mounted. */
struct quotas *quotas_open(struct ft_writer *w, struct proc_metrics *m, const char *proc);

/* Checks the cgroups of each process and its threads, and their ancestors. Writes a note for each quota that
 * is new, changed or gone. For each quota in force, writes the kernel's count and total time of throttling as
 * series. Returns whether any quota is in force. `q` may be NULL. Called ten times per second: it does
 * nothing until 1,000 times the CPU time of its last work has passed, unless there are more or fewer
 * processes. */
bool quotas_look(struct quotas *q, const pid_t *pids, size_t count, uint64_t now_ns);
/* A new file begins: the next call writes the quotas in force again. */
void quotas_begin_segment(struct quotas *q);
void quotas_close(struct quotas *q);

#ifdef __cplusplus
}
#endif

#endif

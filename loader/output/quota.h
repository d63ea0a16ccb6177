/* SPDX-License-Identifier: MIT */
/* CPU quotas (CFS bandwidth) of the cgroups that targets run in, as user space sees them. */
#ifndef FORKTAIL_LOADER_QUOTA_H
#define FORKTAIL_LOADER_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "loader/output/proc_metrics.h"
#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct quotas;

/* NULL when this host has no cgroups with a CPU controller, or memory is out: no quotas then.
 * `proc` is where proc is mounted. */
struct quotas *quotas_open(struct ft_writer *w, struct proc_metrics *m, const char *proc);

/* Looks at the cgroups of each process and of its threads, and those above them. A quota that is new, changed
 * or gone is written as a note; of each in force the kernel's count of throttles and their sum are written as
 * series. Returns whether any is in force. `q` may be NULL. */
bool quotas_look(struct quotas *q, const pid_t *pids, size_t count);
/* A file begins: the next look notes again what is in force. */
void quotas_begin_segment(struct quotas *q);
void quotas_close(struct quotas *q);

#ifdef __cplusplus
}
#endif

#endif

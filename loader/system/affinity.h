/* SPDX-License-Identifier: MIT */
/* The recorder's affinity and priority: other CPUs than the watched processes, and a lower priority. */
#ifndef FORKTAIL_LOADER_AFFINITY_H
#define FORKTAIL_LOADER_AFFINITY_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Restricts this thread, and everything it starts later, to CPUs that no thread of these processes may use.
 * Without such CPUs, as on a host without pinning, nothing changes. */
void affinity_avoid(const pid_t *pids, size_t count);

/* Lets this thread, and everything it starts later, hold a CPU for a short time only while others wait for it
 * (Linux 6.12). Returns 0 or a negative errno. */
int slices_shorten(void);

/* The same, and lowers the priority of this thread and of everything it starts later. Returns 0 or a negative
 * errno. */
int priority_lower(void);

/* For the main thread: after each sleep, */
void cpu_piece_begins(void);
/* and between two parts of its work: if it has held the CPU for half a millisecond, a thread that waits for
 * this CPU gets it. */
void cpu_offer(void);
/* The same in a loop over things that take microseconds. */
void cpu_offer_in_loop(void);

#ifdef __cplusplus
}
#endif

#endif

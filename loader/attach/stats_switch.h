/* SPDX-License-Identifier: MIT */
/* Switches the kernel's run-time statistics of BPF programs on and off during a recording. */
#ifndef FORKTAIL_LOADER_STATS_SWITCH_H
#define FORKTAIL_LOADER_STATS_SWITCH_H

#include <stdbool.h>

/* Forks the process that switches. Call this before opening anything that the process should not have.
 * Returns a negative errno if the process cannot start; statistics then stay off. */
int stats_switch_start(void);
/* Returns after switching: whether the statistics are on now. */
bool stats_switch(bool on);
/* Switches the statistics off and ends the process. */
void stats_switch_end(void);

#endif

/* SPDX-License-Identifier: MIT */
/* The kernel's run-time statistics of BPF programs, switched on and off while it records. */
#ifndef FORKTAIL_LOADER_STATS_SWITCH_H
#define FORKTAIL_LOADER_STATS_SWITCH_H

#include <stdbool.h>

/* Forks the process that does it. To be called before anything is opened that it should not have. Without it
 * (a negative errno) statistics stay off. */
int stats_switch_start(void);
/* Returns when it is done: whether they are on now. */
bool stats_switch(bool on);
/* Off, and the process ends. */
void stats_switch_end(void);

#endif

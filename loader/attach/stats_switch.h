/* SPDX-License-Identifier: MIT */
/* Switches the kernel's run-time statistics of BPF programs on and off during a recording. */
#ifndef FORKTAIL_LOADER_STATS_SWITCH_H
#define FORKTAIL_LOADER_STATS_SWITCH_H

#include <stdbool.h>

#include "loader/system/helper_process.h"

extern const struct helper_setup stats_helper;
/* Starts the process that switches. Returns a negative errno if the process cannot start; statistics then
 * stay off. */
int stats_switch_start(void);
/* Returns after switching: whether the statistics are on now. If the process has ended, it is started again
 * later. */
bool stats_switch(bool on);
/* Switches the statistics off and ends the process. */
void stats_switch_end(void);

#endif

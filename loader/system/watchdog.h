/* SPDX-License-Identifier: MIT */
/* A thread that notices if the main loop does not come back, and says which system call it is in: the loop is
 * written so that no target can hold it up, and this is how a mistake in that would be seen. */
#ifndef FORKTAIL_LOADER_WATCHDOG_H
#define FORKTAIL_LOADER_WATCHDOG_H

#include <stdint.h>

/* Starts the thread; the calling thread is the one that is watched. Call it before the recorder's filter is
 * loaded. Returns 0 or a negative errno. */
int watchdog_start(void);
/* The main loop begins with a round, or (0) is about to wait for events. */
void watchdog_round(uint64_t now_ns);
/* How many rounds took longer than a second so far. */
uint64_t watchdog_stalls(void);

#endif

/* SPDX-License-Identifier: MIT */
/* The recorder's place on the host: beside the processes it watches, and behind them. */
#ifndef FORKTAIL_LOADER_PLACE_H
#define FORKTAIL_LOADER_PLACE_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Leaves this thread, and what it starts from here on, the CPUs that no thread of these processes may run on.
 * It stays where it is when there are none such, as on a host where nothing is pinned. */
void place_beside(const pid_t *pids, size_t count);

/* From here on others come first. 0 or a negative errno. */
int place_behind(void);

#ifdef __cplusplus
}
#endif

#endif

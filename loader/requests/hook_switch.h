/* SPDX-License-Identifier: MIT */
/* Attaches and detaches programs while the recorder runs, which may no longer do so itself. */
#ifndef FORKTAIL_LOADER_HOOK_SWITCH_H
#define FORKTAIL_LOADER_HOOK_SWITCH_H

#include <stdbool.h>
#include <stddef.h>

#include "loader/system/helper_process.h"

/* Starts a process that may only do this, for at most HELPER_KEPT_MAX loaded programs of BTF tracepoints or
 * functions. Returns 0 or a negative errno. */
int hook_switch_start(struct helper_process *h, const int *programs, size_t count);
/* Attaches all, or detaches all, which takes some milliseconds. Returns 0 or a negative errno. */
int hook_switch_set(const struct helper_process *h, bool on);

#endif

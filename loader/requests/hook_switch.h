/* SPDX-License-Identifier: MIT */
/* Attaches and detaches programs while the recorder runs, which may no longer do so itself. */
#ifndef FORKTAIL_LOADER_HOOK_SWITCH_H
#define FORKTAIL_LOADER_HOOK_SWITCH_H

#include <stddef.h>

#include "loader/system/helper_process.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct helper_setup switch_helper;
/* Starts a process that may only do this, for at most HELPER_KEPT_MAX loaded programs of BTF tracepoints or
 * functions. Returns 0 or a negative errno. */
int hook_switch_start(struct helper_process *h, const int *programs, size_t count);
enum { HOOKS_NONE = 0, HOOKS_ALL = (1 << HELPER_KEPT_MAX) - 1 };
/* Attaches the programs whose bits are set in `on` (the first one's is the lowest), and detaches the others,
 * which takes some milliseconds. Returns 0 or a negative errno. */
int hook_switch_set(const struct helper_process *h, unsigned on);

#ifdef __cplusplus
}
#endif

#endif

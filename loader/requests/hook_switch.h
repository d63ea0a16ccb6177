/* SPDX-License-Identifier: MIT */
/* Attaches and detaches programs while the recorder runs, which may no longer do so itself. */
#ifndef FORKTAIL_LOADER_HOOK_SWITCH_H
#define FORKTAIL_LOADER_HOOK_SWITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { HOOKS_MAX = 8 };

struct hook_switch {
	pid_t pid;
	int socket; /* -1: there is none */
};

/* Starts a process that may do nothing but this, for loaded programs of BTF tracepoints. Returns 0 or a
 * negative errno. */
int hook_switch_start(struct hook_switch *s, const int *programs, size_t count);
/* Attaches all, or detaches all, which takes some milliseconds. Returns 0 or a negative errno. */
int hook_switch_set(const struct hook_switch *s, bool on);
void hook_switch_end(struct hook_switch *s);

#endif

/* SPDX-License-Identifier: MIT */
/* forktail-guard watches the ring that the recorder fills: it takes snapshots, serves metrics and runs
 * commands. It does not record and needs no privileges for it. So it is a separate process of the ring's user
 * that reads files. The recorder starts it, never waits for it, and continues without it. */
#ifndef FORKTAIL_LOADER_GUARD_START_H
#define FORKTAIL_LOADER_GUARD_START_H

#include <stddef.h>
#include <sys/types.h>

#include "loader/output/segments.h"

enum { GUARD_ARGS_MAX = 128 };

/* The guard's command line, without its name and the ring. */
struct guard_args {
	const char *all[GUARD_ARGS_MAX];
	size_t count; /* 0: no guard is wanted */
};

/* Adds an option and its value (NULL: no value). -E2BIG: too many. */
int guard_args_add(struct guard_args *g, const char *option, const char *value);

/* Starts a process of that user that runs the guard as long as the recorder lives. If the guard exits, it is
 * started again after a pause that grows from a second to a minute, but not if it rejected its command line.
 * -ENOENT: the guard is not in the directory of this program. -EACCES: the user cannot run it there. */
int guard_start(const struct guard_args *g, const char *ring, const struct file_owner *user);

#endif

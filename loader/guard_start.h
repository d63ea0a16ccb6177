/* SPDX-License-Identifier: MIT */
/* forktail-guard, which watches the ring for the recorder that fills it: makes snapshots, serves metrics,
 * runs commands. It has no part in recording and no rights of it, so it is another process, of the ring's
 * user, that reads files; the recorder starts it, waits for nothing of it, and goes on when it doesn't. */
#ifndef FORKTAIL_LOADER_GUARD_START_H
#define FORKTAIL_LOADER_GUARD_START_H

#include <stddef.h>
#include <sys/types.h>

#include "loader/output/segments.h"

enum { GUARD_ARGS_MAX = 128 };

/* Its command line, but for its name and the ring. */
struct guard_args {
	const char *all[GUARD_ARGS_MAX];
	size_t count; /* 0: none is wanted */
};

/* Adds an option and its value; NULL: it has none. -E2BIG: there are too many. */
int guard_args_add(struct guard_args *g, const char *option, const char *value);

/* Starts a process of that user that has the guard run as long as the recorder lives: should it end, again,
 * after a pause that grows from a second to a minute. One that didn't understand its command line isn't
 * started again. -ENOENT: it isn't beside this program. */
int guard_start(const struct guard_args *g, const char *ring, const struct file_owner *user);

#endif

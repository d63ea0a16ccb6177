/* SPDX-License-Identifier: MIT */
/* One recording, from the first look at the host to the trailer. */
#ifndef FORKTAIL_LOADER_RECORD_H
#define FORKTAIL_LOADER_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "programs.h"
#include "targets.h"

struct record_options {
	const char *output;
	uint64_t duration_ns; /* 0: until a signal or the last target's end */
	struct programs_wanted wanted;
	int argc; /* the command line, for the manifest */
	char **argv;
};

/* Records the targets. Prints what it does on stderr; returns the exit status (0 done, 3 the environment
 * can't). */
int record(const struct record_options *options, const struct targets *targets);

#endif

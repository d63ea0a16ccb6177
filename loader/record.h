/* SPDX-License-Identifier: MIT */
/* One recording, from the first look at the host to the trailer. */
#ifndef FORKTAIL_LOADER_RECORD_H
#define FORKTAIL_LOADER_RECORD_H

#include "loader/record_options.h"
#include "loader/targets/targets.h"

/* Records the targets. Prints what it does on stderr; returns the exit status (0 done, 3 the environment
 * can't). */
int record(const struct record_options *options, struct targets *targets);

#endif

/* SPDX-License-Identifier: MIT */
/* One recording, from probing the host to the trailer. */
#ifndef FORKTAIL_LOADER_RECORD_H
#define FORKTAIL_LOADER_RECORD_H

#include "loader/record_options.h"
#include "loader/targets/targets.h"

/* Records the targets. Prints progress on stderr. Returns the exit status (0 done, 3 the host does not allow
 * it). */
int record(const struct record_options *options, struct targets *targets);

#endif

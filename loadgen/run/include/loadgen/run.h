/* SPDX-License-Identifier: MIT */
/* One run of the load generator: a fill, a mix, or the tests of -t in order. */
#ifndef FORKTAIL_LOADGEN_RUN_H
#define FORKTAIL_LOADGEN_RUN_H

#include "loadgen/options.h"

/* Performs the run. argc and argv are written to the recording's manifest. Returns the exit status. */
int run_load(const struct options *o, int argc, char **argv);

/* Whether the files that the run would write can be: --json is written at its end, and hours may be lost by
 * then. Returns the exit status, after one sentence on stderr if it is not 0. */
int run_check(const struct options *o);
#endif

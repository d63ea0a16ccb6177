/* SPDX-License-Identifier: MIT */
/* Prepares a recording for the servers that it is replayed on. */
#ifndef FORKTAIL_LOADGEN_REPLAY_SETUP_H
#define FORKTAIL_LOADGEN_REPLAY_SETUP_H

#include "run_state.h"

/* Finds keys by asking the server, if they matter; then the sample, times, order and connections of the
 * options. Returns 0, or a negative errno and a sentence. */
int replay_setup(struct run *r, char *error, size_t size);

#endif

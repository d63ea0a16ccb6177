/* SPDX-License-Identifier: MIT */
/* Load without an event loop, as a plain client does it, in a closed or an open loop. */
#ifndef FORKTAIL_LOADGEN_BLOCKING_H
#define FORKTAIL_LOADGEN_BLOCKING_H

#include "loadgen/engine/load_model.h"

extern const struct load_model blocking_closed_loop, blocking_open_loop;

#endif

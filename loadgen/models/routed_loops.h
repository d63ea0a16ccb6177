/* SPDX-License-Identifier: MIT */
/* Load on several servers, in a closed or an open loop. */
#ifndef FORKTAIL_LOADGEN_ROUTED_H
#define FORKTAIL_LOADGEN_ROUTED_H

#include "loadgen/engine/load_model.h"

extern const struct load_model routed_closed_loop, routed_open_loop;

#endif

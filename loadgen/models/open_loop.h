/* SPDX-License-Identifier: MIT */
/* The open loop: requests fall due by the clock, whatever the server does. */
#ifndef FORKTAIL_LOADGEN_OPEN_LOOP_H
#define FORKTAIL_LOADGEN_OPEN_LOOP_H

#include "loadgen/engine/load_model.h"

extern const struct load_model open_loop;

#endif

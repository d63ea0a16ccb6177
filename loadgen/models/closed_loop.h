/* SPDX-License-Identifier: MIT */
/* The closed loop: answers make room for requests. */
#ifndef FORKTAIL_LOADGEN_CLOSED_LOOP_H
#define FORKTAIL_LOADGEN_CLOSED_LOOP_H

#include "loadgen/engine/load_model.h"

extern const struct load_model closed_loop;

#endif

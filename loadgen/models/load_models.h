/* SPDX-License-Identifier: MIT */
/* The load models. load_model.h explains what a model is. */
#ifndef FORKTAIL_LOADGEN_LOAD_MODELS_H
#define FORKTAIL_LOADGEN_LOAD_MODELS_H

#include "loadgen/engine/load_model.h"

/* One server, with an event loop. */
extern const struct load_model closed_loop, open_loop, replay_send;
/* One server, without an event loop, like a plain client. */
extern const struct load_model blocking_closed_loop, blocking_open_loop;
/* Several servers. */
extern const struct load_model routed_closed_loop, routed_open_loop, routed_replay;

#endif

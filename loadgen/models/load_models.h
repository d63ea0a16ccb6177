/* SPDX-License-Identifier: MIT */
/* The load models that there are, beside the replay's (replay_send.h); what a model is: load_model.h. */
#ifndef FORKTAIL_LOADGEN_LOAD_MODELS_H
#define FORKTAIL_LOADGEN_LOAD_MODELS_H

#include "loadgen/engine/load_model.h"

/* One server, with an event loop. */
extern const struct load_model closed_loop, open_loop;
/* One server, without an event loop, as a plain client does it. */
extern const struct load_model blocking_closed_loop, blocking_open_loop;
/* Several servers. */
extern const struct load_model routed_closed_loop, routed_open_loop;

#endif

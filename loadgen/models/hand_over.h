/* SPDX-License-Identifier: MIT */
/* A load thread's counts, handed over to the main thread once a second: two sets change places, so neither
 * waits for the other, and the path of a request takes no lock. */
#ifndef FORKTAIL_LOADGEN_HAND_OVER_H
#define FORKTAIL_LOADGEN_HAND_OVER_H

#include "loadgen/engine/load_thread.h"

/* The load thread's side: hands over a second's counts, and flushes the log. */
void hand_over_tick(struct load_thread *t, uint64_t now_ns);
/* The main thread's: the last whole second's counts, or NULL; given back (emptied) with hand_over_return.
 */
struct stats *hand_over_take(struct load_thread *t);
void hand_over_return(struct load_thread *t, struct stats *s);

#endif

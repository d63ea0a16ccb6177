/* SPDX-License-Identifier: MIT */
/* Hands a load thread's counters to the main thread once per second: two sets are exchanged, so that neither
 * thread waits for the other, and the path of a request takes no lock. */
#ifndef FORKTAIL_LOADGEN_HAND_OVER_H
#define FORKTAIL_LOADGEN_HAND_OVER_H

#include "loadgen/engine/load_thread.h"

/* For the load thread: hands over a second's counters and flushes the log. */
void hand_over_tick(struct load_thread *t, uint64_t now_ns);
/* For the main thread: the last complete second's counters, or NULL. It returns them (cleared) with
 * hand_over_return. */
struct stats *hand_over_take(struct load_thread *t);
void hand_over_return(struct load_thread *t, struct stats *s);

#endif

/* SPDX-License-Identifier: MIT */
/* How a load thread comes to its end: nothing is left to do, or errors ended the run. */
#ifndef FORKTAIL_LOADGEN_FINISH_H
#define FORKTAIL_LOADGEN_FINISH_H

#include "load_thread.h"

/* Ends the loop when nothing is on its way and nothing more will be sent. */
void finish_if_done(struct load_thread *t, uint64_t now_ns);
/* Whether requests are left and it is time to send them: of closed loops the `more`. */
bool closed_more(struct load_thread *t, uint64_t now_ns);
/* Counts requests due up to now and never sent. */
void fail_unsent(struct load_thread *t, uint64_t now_ns);
/* Counts an error against the plan's limits; ends the run when it is one too many. */
void count_error(struct load_thread *t);

#endif

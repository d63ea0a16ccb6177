/* SPDX-License-Identifier: MIT */
/* How a load thread ends: no work is left, or errors ended the run. */
#ifndef FORKTAIL_LOADGEN_FINISH_H
#define FORKTAIL_LOADGEN_FINISH_H

#include "load_thread.h"

/* Ends the loop when nothing is outstanding and nothing more will be sent. */
void finish_if_done(struct load_thread *t, uint64_t now_ns);
/* Whether requests are left and it is time to send them: `more` of closed loops. */
bool closed_more(struct load_thread *t, uint64_t now_ns);
/* Counts requests that were due by now and never sent; after loss_is_final(), those due later, too. */
void fail_unsent(struct load_thread *t, uint64_t now_ns);
/* Whether all connections are lost and none will be reopened, although the run was not ended: what falls due
 * until its planned end will never be sent. */
bool loss_is_final(const struct load_thread *t);
/* Counts an error against the plan's limits. Ends the run when the limit is exceeded. */
void count_error(struct load_thread *t);

#endif

/* SPDX-License-Identifier: MIT */
/* Requests that fall due by the clock: waking up for the next one, and what becomes of those that are never
 * sent. */
#ifndef FORKTAIL_LOADGEN_DUE_REQUESTS_H
#define FORKTAIL_LOADGEN_DUE_REQUESTS_H

#include "loadgen/engine/load_thread.h"

/* Has the model pump when due_ns has come (PACING_NEVER: nothing). */
void due_arm(struct load_thread *t, uint64_t due_ns);
/* Whether requests are still to fall due: of open loops the `more`. */
bool due_more(struct load_thread *t, uint64_t now_ns);
/* Ends the pacing, and counts what was due up to now and never sent. */
void due_fail_unsent(struct load_thread *t, uint64_t now_ns);

#endif

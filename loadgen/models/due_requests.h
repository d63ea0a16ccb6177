/* SPDX-License-Identifier: MIT */
/* Requests that fall due by the clock: waking up for the next one, and ending those that are never sent. */
#ifndef FORKTAIL_LOADGEN_DUE_REQUESTS_H
#define FORKTAIL_LOADGEN_DUE_REQUESTS_H

#include "loadgen/engine/load_thread.h"

/* Calls the model's pump at due_ns (PACING_NEVER: never). */
void due_arm(struct load_thread *t, uint64_t due_ns);
/* Whether requests will still fall due: `more` of open loops. */
bool due_more(struct load_thread *t, uint64_t now_ns);
/* Ends the pacing, and counts what was due and never sent: by now, or until the planned end if all
 * connections are lost. */
void due_fail_unsent(struct load_thread *t, uint64_t now_ns);

#endif

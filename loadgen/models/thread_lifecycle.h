/* SPDX-License-Identifier: MIT */
/* Creates, starts, wakes, joins and frees a load thread. */
#ifndef FORKTAIL_LOADGEN_THREAD_LIFECYCLE_H
#define FORKTAIL_LOADGEN_THREAD_LIFECYCLE_H

#include "loadgen/engine/load_thread.h"

/* Creates a thread of `count` (> 0) connections per server, without any yet (group.h). Negative errno. */
int load_thread_init(struct load_thread *t, struct load_plan *plan, uint32_t index, uint32_t count,
		     struct request_log *log);
/* `left`, `chooser`, `pacing` and `cpu` are this thread's part. plan->start_ns must be set. */
int load_thread_start(struct load_thread *t);
/* Wakes it because the plan's `stop` or `abandon` was set. */
void load_thread_wake(struct load_thread *t);
void load_thread_join(struct load_thread *t);
void load_thread_free(struct load_thread *t);

#endif

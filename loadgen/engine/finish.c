/* SPDX-License-Identifier: MIT */
/* The end of a thread's load. Code that removes an outstanding item checks whether it was the last. */
#include "finish.h"

#include <unistd.h>

bool closed_more(struct load_thread *t, uint64_t now_ns)
{
	return t->left > 0 && now_ns < t->plan->end_ns && !t->stopping;
}

void fail_unsent(struct load_thread *t, uint64_t now_ns)
{
	if (t->model->fail_unsent)
		t->model->fail_unsent(t, now_ns);
}

bool loss_is_final(const struct load_thread *t)
{
	return t->alive == 0 && !t->stopping && !atomic_load(&t->plan->ending.stop);
}

void finish_if_done(struct load_thread *t, uint64_t now_ns)
{
	bool more = t->model->more(t, now_ns);

	if (t->finished || t->in_flight > 0 || (more && t->alive > 0))
		return;
	if (t->alive == 0)
		fail_unsent(t, now_ns);
	t->finished = true;
	if (t->base)
		event_base_loopbreak(t->base);
}

void count_error(struct load_thread *t)
{
	struct load_plan *plan = t->plan;
	struct ending *e = &plan->ending;
	uint64_t one = 1, errors = atomic_fetch_add(&e->errors, 1) + 1;

	if (plan->on_error != ON_ERROR_STOP && !(e->max_errors && errors >= e->max_errors))
		return;
	if (atomic_exchange(&e->stop, true))
		return;
	atomic_store(&e->gave_up, true);
	t->left = 0; /* no more requests from here on; other threads notice in a moment */
	/* The main thread wakes the other threads, and this one after it returns to its loop. */
	(void)!write(e->done_fd, &one, sizeof(one));
}

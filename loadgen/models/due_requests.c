/* SPDX-License-Identifier: MIT */
/* Requests that fall due by the clock. The timer is set only when the next request's instant changes and
 * there is space for it: most instants pass while answers arrive anyway. */
#include "due_requests.h"

#include <sys/timerfd.h>

#include "loadgen/engine/finish.h"
#include "loadgen/engine/request_end.h"
#include "recording/recording.h"

void due_arm(struct load_thread *t, uint64_t due_ns)
{
	struct itimerspec when = {
	    .it_value = {.tv_sec = (time_t)(due_ns / 1000000000), .tv_nsec = (long)(due_ns % 1000000000)}};

	if (due_ns == PACING_NEVER || due_ns == t->alarms.due_ns)
		return;
	if (!t->plan->busy_poll)
		timerfd_settime(t->alarms.due_fd, TFD_TIMER_ABSTIME, &when, NULL);
	t->alarms.due_ns = due_ns;
}

bool due_more(struct load_thread *t, uint64_t now_ns)
{
	(void)now_ns;
	return t->pacing.due_ns != PACING_NEVER;
}

/* A user of a server that is gone waits until the planned end: a shorter latency would make such a run look
 * better than one whose server hangs. */
void due_fail_unsent(struct load_thread *t, uint64_t now_ns)
{
	bool lost = loss_is_final(t);
	uint64_t end_ns = lost ? pacing_end_ns(&t->pacing) : PACING_NEVER;

	if (end_ns == PACING_NEVER)
		pacing_stop(&t->pacing, now_ns);
	end_ns = end_ns == PACING_NEVER || end_ns < now_ns ? now_ns : end_ns;
	t->lane.waits_for_spare = true; /* there may be millions, and measuring has ended */
	while (t->pacing.due_ns != PACING_NEVER) {
		struct pending_request p = {
		    .intended_ns = t->pacing.due_ns,
		    .start_ns = end_ns,
		    .operation = (uint8_t)choose_operation(&t->plan->mix, &t->chooser),
		};
		record_end(t, NO_CONNECTION, &p, end_ns, FT_STATUS_UNSENT, 0);
		pacing_take(&t->pacing);
		/* Ctrl-C, or --max-errors: what falls due later does not count. */
		if (lost && atomic_load_explicit(&t->plan->ending.stop, memory_order_relaxed))
			pacing_stop(&t->pacing, now_ns);
	}
}

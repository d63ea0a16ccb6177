/* SPDX-License-Identifier: MIT */
/* Requests that fall due by the clock. The timer is set only when the next request's instant changes and
 * there is space for it: most instants pass while answers arrive anyway. */
#include "due_requests.h"

#include <sys/timerfd.h>

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

void due_fail_unsent(struct load_thread *t, uint64_t now_ns)
{
	pacing_stop(&t->pacing, now_ns);
	t->lane.patient = true; /* there may be millions, and measuring has ended */
	while (t->pacing.due_ns != PACING_NEVER) {
		struct pending_request p = {
		    .intended_ns = t->pacing.due_ns,
		    .start_ns = now_ns,
		    .operation = (uint8_t)choose_operation(&t->plan->mix, &t->chooser),
		};
		record_end(t, NO_CONNECTION, &p, now_ns, FT_STATUS_UNSENT, 0);
		pacing_take(&t->pacing);
	}
}

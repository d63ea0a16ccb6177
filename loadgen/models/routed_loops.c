/* SPDX-License-Identifier: MIT */
/* The load on several servers (routed_requests.h). A closed loop keeps -c times -P requests outstanding over
 * all servers, as with one server. Each server has -c connections (over all threads), so a request waits for
 * a connection only if its server is in trouble. In an open loop all due requests are taken at once, so that
 * those waiting for one server delay no others. */
#include "due_requests.h"
#include "load_models.h"
#include "loadgen/engine/finish.h"
#include "routed_requests.h"

/* The maximum number of waiting requests before an open loop holds back due requests. */
enum { WAITING_MAX = 8 << 20 };

/* Takes a request and sends it to its server. */
static void take_another(struct load_thread *t, uint64_t intended_ns)
{
	const struct load_plan *plan = t->plan;
	uint32_t operation = choose_operation(&plan->mix, &t->chooser);
	const struct pending_request p = {
	    .intended_ns = intended_ns,
	    .key = choose_key(plan->workload, &plan->mix, &t->chooser, operation, 0),
	    .operation = (uint8_t)operation,
	};

	t->in_flight++;
	routed_send(t, &p);
}

static void closed_pump(struct load_thread *t, uint64_t now_ns)
{
	uint64_t most = (uint64_t)t->connection_count * t->plan->pipeline;

	while (closed_more(t, now_ns) && t->in_flight < most) {
		t->left--;
		take_another(t, 0);
	}
	routed_flush(t);
	finish_if_done(t, now_ns);
}

static void open_pump(struct load_thread *t, uint64_t now_ns)
{
	while (!t->stopping && t->pacing.due_ns <= now_ns && t->in_flight < WAITING_MAX) {
		uint64_t due_ns = t->pacing.due_ns;

		pacing_take(&t->pacing);
		take_another(t, due_ns);
	}
	routed_flush(t);
	due_arm(t, t->pacing.due_ns);
	finish_if_done(t, now_ns);
}

const struct load_model routed_closed_loop = {
    ROUTED,
    .free = routing_free,
    .pump = closed_pump,
    .more = closed_more,
};

const struct load_model routed_open_loop = {
    ROUTED, .free = routing_free, .pump = open_pump, .more = due_more, .fail_unsent = due_fail_unsent,
};

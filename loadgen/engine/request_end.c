/* SPDX-License-Identifier: MIT */
/* The end of a request: the histogram, the log, and errors against the plan's limits. On the hot path. */
#include "request_end.h"

#include "finish.h"
#include "loadgen/cluster/proxy_ring.h"
#include "recording/recording.h"

/* When their answers arrived: the last of the bytes that are being read. A failed request has none. */
static __attribute__((noinline)) void note_arrival(struct load_thread *t, struct ft_request *q,
						   uint32_t times)
{
	uint64_t at_ns = t->arriving.at_ns;

	if (q->status > FT_STATUS_ERROR_REPLY || at_ns < q->start_ns || at_ns > q->end_ns)
		return;
	q->arrival_ns = at_ns;
	if (q->intended_ns >= t->plan->measure_ns)
		stats_add_arrival(t->stats, at_ns - q->intended_ns, q->end_ns - at_ns, times);
}

/* Requests that are equal, `bytes` together. */
static inline void count_and_log(struct load_thread *t, struct ft_request *q, uint64_t bytes, uint32_t times)
{
	if (__builtin_expect(t->arriving.at_ns != 0, 0))
		note_arrival(t, q, times);
	if (__builtin_expect(q->intended_ns >= t->plan->measure_ns, 1)) {
		t->counting = true;
		stats_add(t->stats, q->op, q->status, q->end_ns - q->intended_ns, bytes, times);
	}
	if (q->end_ns - q->intended_ns >= t->plan->log_over_ns || status_is_error(q->status))
		log_append(&t->lane, q, times);
}

void record_equal(struct load_thread *t, struct equal_requests *e)
{
	count_and_log(t, &e->request, e->bytes, e->count);
}

void record_request(struct load_thread *t, uint32_t connection, const struct pending_request *p,
		    uint64_t end_ns, unsigned status, uint64_t bytes)
{
	const struct workload *w = t->plan->workload;
	struct ft_request q = ended_request(connection, p, end_ns, status);

	/* A request without a connection has no key. */
	if (__builtin_expect(t->plan->proxy_ring != NULL, 0) && connection != NO_CONNECTION)
		q.behind = proxy_ring_server(t->plan->proxy_ring, w, p->operation, p->key, &t->key_name);
	count_and_log(t, &q, bytes, 1);
	if (w->growing && w->operations[p->operation].inserts && connection != NO_CONNECTION)
		key_base_ack(w->base, p->key);
	if (__builtin_expect(status_is_error(status), 0)) {
		if (p->intended_ns >= t->plan->measure_ns)
			stats_note_error(t->stats, status,
					 status == FT_STATUS_UNSENT ? p->intended_ns : end_ns);
		count_error(t);
	}
}

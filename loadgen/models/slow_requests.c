/* SPDX-License-Identifier: MIT */
/* What is looked at when a request was slow: its key (--keys) and its connection's TCP. A request in flight
 * has only its key's number, so that the hot path stores no text: the text is written a second time here. */
#include <string.h>

#include "loadgen/engine.h"
#include "loadgen/workload.h"

/* Whatever TCP does that delays a request delays it by more. */
enum { TCP_SLOW_NS = 5000000 };

/* Whether no request before or after the oldest was sent with the same write. The one before is in its slot
 * until another takes it, unless it is an earlier step of the same operation. */
static bool was_sent_alone(const struct connection *c)
{
	const struct pending_request *p = &c->pending[c->first];

	if (c->in_flight - c->to_send > 1 && c->pending[ring_index(c, 1)].start_ns == p->start_ns)
		return false;
	return c->ring_size == 1 || p->step > 0 ||
	       c->pending[ring_index(c, c->ring_size - 1)].start_ns != p->start_ns;
}

/* Logs the key of the oldest request. Not of a pipeline that was sent with one write: it is not known which
 * of its requests took long. */
static void note_key(struct connection *c, uint64_t now_ns)
{
	struct load_thread *t = c->thread;
	const struct load_plan *plan = t->plan;
	const struct pending_request *p = &c->pending[c->first];
	struct slow_key key = {
	    .sent_ns = p->start_ns, .end_ns = now_ns, .connection = c->id, .operation = p->operation};
	bool whole;

	if (!t->lane.log || now_ns - p->intended_ns < plan->log_over_ns || p->operation == NO_OPERATION ||
	    !was_sent_alone(c) ||
	    !request_key(plan->workload, p->operation, p->key, plan->options->key_bytes, &t->key_name,
			 &whole))
		return;
	key.begin = !whole;
	key.bytes = (uint8_t)t->key_name.length;
	memcpy(key.text, t->key_name.at, key.bytes);
	log_key(&t->lane, &key);
}

void request_was_slow(struct connection *c, uint64_t now_ns)
{
	if (now_ns > c->pending[c->first].start_ns + TCP_SLOW_NS)
		connection_was_slow(c, now_ns);
	if (c->thread->plan->options->key_bytes)
		note_key(c, now_ns);
}

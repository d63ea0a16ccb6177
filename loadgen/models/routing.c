/* SPDX-License-Identifier: MIT */
/* A thread's view of several servers. Everything here is read while requests are outstanding, so the table of
 * nodes that all threads share is read without a lock (nodes.h). */
#include "routing.h"

#include <errno.h>
#include <stdlib.h>

#include "loadgen/cluster/nodes.h"
#include "loadgen/cluster/route.h"

int routing_init(struct load_thread *t)
{
	t->routing = calloc(1, sizeof(*t->routing));
	if (!t->routing)
		return -ENOMEM;
	t->routing->nodes = t->plan->nodes;
	t->routing->rotation = t->index;
	t->routing->version = atomic_load(&t->plan->nodes->version);
	return 0;
}

void routing_free(struct load_thread *t)
{
	if (!t->routing)
		return;
	free(t->routing->scratch.at);
	free(t->routing->later.ring);
	free(t->routing);
	t->routing = NULL;
}

const struct step *routing_step(const struct load_thread *t, const struct pending_request *p)
{
	return &t->plan->workload->operations[p->operation]
		    .steps[p->step < STEPS_MAX ? p->step : STEPS_MAX - 1u];
}

uint32_t routing_slot(struct load_thread *t, const struct pending_request *p)
{
	const uint16_t *slots = t->plan->workload->recorded.slots;

	if (slots)
		return slots[p->key] == NO_SLOT ? ROUTE_ANYWHERE : slots[p->key];
	return route_slot(t->routing->nodes, t->plan->workload, routing_step(t, p), p->key,
			  &t->routing->scratch);
}

struct group *routing_blame(struct load_thread *t, const struct pending_request *p)
{
	uint32_t slot = routing_slot(t, p);
	uint16_t owner = slot == ROUTE_ANYWHERE ? NODE_NONE : nodes_choose(t->routing->nodes, slot, false, 0);

	return owner == NODE_NONE ? NULL : t->routing->of_node[owner];
}

void routing_count(struct load_thread *t, struct group *g, const struct pending_request *p, uint64_t now_ns,
		   unsigned status)
{
	struct outages *o = &t->routing->outages;
	uint32_t slot;

	if (p->intended_ns >= t->plan->measure_ns)
		stats_node(t->stats, g->node, status, now_ns - p->intended_ns, p->tries > 0);
	if (!status_is_error(status))
		g->last_ok_ns = now_ns;
	if (__builtin_expect(!outages_concern(o, p->intended_ns), 1))
		return;
	slot = routing_slot(t, p);
	if (slot == ROUTE_ANYWHERE)
		return;
	if (status_is_error(status)) {
		outages_note_failure(o, slot);
		return;
	}
	nodes_set_reachable(t->routing->nodes, g->node, true);
	/* An answer that a replica may give does not show that the primary works. */
	if (t->routing->nodes->read_from == READ_PRIMARY || !routing_step(t, p)->route.reads)
		outages_note_answer(o, slot, g->node, p->intended_ns, now_ns);
}

/* Opens an outage of the node's current slots, if it has any. Each refused connect() and each CLUSTERDOWN
 * calls this, so it checks for an open outage before it collects the slots. */
static void begin_outage(struct load_thread *t, const struct group *g, uint64_t now_ns)
{
	const struct nodes *n = t->routing->nodes;
	struct outages *o = &t->routing->outages;
	bool begun = false;

	if (outages_is_open(o, g->node))
		return;
	for (uint32_t i = 0; i < CLUSTER_SLOTS; i++) {
		if (atomic_load_explicit(&n->owner[i], memory_order_relaxed) != g->node)
			continue;
		if (!begun && !outages_begin(o, g->node, g->last_ok_ns, now_ns))
			return;
		begun = true;
		outages_mark(o, i);
	}
}

void routing_trouble(struct connection *c, uint64_t now_ns)
{
	struct load_thread *t = c->thread;

	if (!t->stopping && now_ns < t->plan->end_ns)
		begin_outage(t, c->group, now_ns);
	nodes_set_reachable(t->routing->nodes, c->group->node, false);
	nodes_look(t->routing->nodes);
}

const struct outages *routing_outages(const struct load_thread *t)
{
	return &t->routing->outages;
}

/* SPDX-License-Identifier: MIT */
/* A request's way to its server and back. docs/reference/load.md shows it. */
#include "routed_requests.h"

#include <string.h>

#include "group.h"
#include "loadgen/cluster/route.h"
#include "loadgen/engine/finish.h"
#include "loadgen/engine/request_end.h"
#include "loadgen/engine/send.h"
#include "recording/recording.h"
#include "replay_lanes.h"

/* How often waiting requests are checked, and sent again without a change of topology. */
#define TICK_NS 5000000u
#define AGAIN_NS 20000000u
enum { REDIRECTS_MAX = 16 };

/* ---- a thread's state ---- */

int routed_init(struct load_thread *t)
{
	int rc = routing_init(t);

	return rc ? rc : event_loop_init(t);
}

/* Requests to the group's node go to the group from now on. */
void routed_on_group(struct load_thread *t, struct group *g)
{
	t->routing->of_node[g->node] = g;
}

static void tick(void *who, uint64_t now_ns);

/* Something waits: check it soon. */
static void watch_waiting(struct load_thread *t, uint64_t now_ns)
{
	if (t->routing->ticking || t->finished)
		return;
	t->routing->ticking = true;
	timers_add(&t->alarms.timers, now_ns + TICK_NS, tick, t);
}

static struct group *group_of(struct load_thread *t, uint16_t node)
{
	struct routing *r = t->routing;
	uint32_t first;

	if (r->of_node[node])
		return r->of_node[node];
	first = atomic_fetch_add(&t->plan->next_connection, t->connection_count);
	r->of_node[node] = group_connect(t, &nodes_at(r->nodes, node)->endpoint, node, NULL, first);
	return r->of_node[node];
}

/* ---- sending ---- */

static void put_last(struct connection *c, const struct pending_request *p)
{
	struct routing *r = c->thread->routing;

	if (c->to_send == 0) {
		c->next_to_send = NULL;
		if (!r->to_send)
			r->last = &r->to_send;
		*r->last = c;
		r->last = &c->next_to_send;
	}
	*ring_add(c) = *p;
}

/* Puts a request on a connection, after an ASKING if needed. */
static void put_on(struct connection *c, const struct pending_request *p, bool asking)
{
	const struct pending_request ask = {.intended_ns = p->intended_ns, .operation = NO_OPERATION};

	if (asking) {
		put_last(c, &ask);
		c->asks++;
	}
	put_last(c, p);
	c->taken++;
	connection_list_update(c);
}

/* Writes requests that were put on connections. */
void routed_flush(struct load_thread *t)
{
	struct routing *r = t->routing;
	struct connection *c;

	r->flushing = true;
	while ((c = r->to_send)) {
		r->to_send = c->next_to_send;
		if (c->to_send > 0 && c->fd >= 0)
			send_batch(c, 0);
	}
	r->flushing = false;
}

static void put_off(struct load_thread *t, struct pending_queue *w, const struct pending_request *p)
{
	struct pending_request late = *p;
	uint64_t now = ft_now_ns();

	pending_set_due(&late, now);
	pending_queue_push(w, &late);
	watch_waiting(t, now);
}

/* Puts a command of the generator itself on a connection. */
static void put_own(struct connection *c, const struct pending_request *p, bool asking)
{
	c->thread->in_flight++;
	put_on(c, p, asking && !lane_is_queued(c->thread, p));
}

/* Puts a request on a connection of the group with space: in a replay, on the connection of its lane. False:
 * none has space, or it has to receive another part of the request's transaction before. */
static bool put_in(struct load_thread *t, struct group *g, const struct pending_request *p, bool asking)
{
	struct connection *c = connection_list_first(g);
	struct pending_request part;

	if (!c)
		return false;
	if (t->replay) {
		c = &g->connections[lane_of(t, p) - t->replay->lanes];
		if (!c->list)
			return false;
		if (lane_needs_part(t, c, p, &part)) {
			put_own(c, &part, asking);
			return false;
		}
		asking &= !lane_is_queued(t, p);
	}
	put_on(c, p, asking);
	return true;
}

static void send_to(struct load_thread *t, const struct pending_request *p, uint16_t node, bool asking)
{
	struct group *g = node == NODE_NONE ? NULL : group_of(t, node);

	if (!g || !put_in(t, g, p, asking))
		put_off(t, !g ? &t->routing->later : asking ? &g->asks : &g->queue, p);
}

/* The current server of a request. */
static uint16_t node_for(struct load_thread *t, const struct pending_request *p)
{
	struct routing *r = t->routing;
	const struct connection *home = t->replay ? lane_home(t, p) : NULL;
	uint32_t slot = routing_slot(t, p);

	if (home)
		return home->group->node;
	if (slot == ROUTE_ANYWHERE && t->replay)
		slot = lane_slot(t, p);
	return slot == ROUTE_ANYWHERE
		   ? nodes_any(r->nodes, r->rotation++)
		   : nodes_choose(r->nodes, slot, routing_step(t, p)->route.reads, r->rotation++);
}

/* Sends a request to the current server of its key. */
void routed_send(struct load_thread *t, const struct pending_request *p)
{
	send_to(t, p, node_for(t, p), false);
}

/* ---- ends ---- */

void routed_on_end(struct connection *c, const struct pending_request *p, uint64_t now_ns, unsigned status)
{
	routing_count(c->thread, c->group, p, now_ns, status);
	if (c->thread->replay)
		lane_release(c->thread, p);
}

/* Ends a request that has lost its connection or never had one. */
static void end_without(struct load_thread *t, struct group *g, uint32_t connection,
			struct pending_request *p, uint64_t now_ns, unsigned status)
{
	pending_set_sent(p, now_ns);
	record_end(t, connection, p, now_ns, status, 0);
	if (!g)
		g = routing_blame(t, p);
	if (g)
		routing_count(t, g, p, now_ns, status);
	if (t->replay)
		lane_release(t, p);
	t->in_flight--;
}

static unsigned given_up_status(const struct pending_request *p)
{
	return p->start_ns ? FT_STATUS_TIMEOUT : FT_STATUS_UNSENT;
}

static void give_up_queue(struct load_thread *t, struct group *g, struct pending_queue *w, uint64_t now_ns)
{
	struct pending_request p;

	while (pending_queue_pop(w, &p))
		end_without(t, g, NO_CONNECTION, &p, now_ns, given_up_status(&p));
}

void routed_give_up(struct load_thread *t, uint64_t now_ns)
{
	for (uint32_t i = 0; i < t->group_count; i++) {
		give_up_queue(t, t->groups[i], &t->groups[i]->queue, now_ns);
		give_up_queue(t, t->groups[i], &t->groups[i]->asks, now_ns);
	}
	give_up_queue(t, NULL, &t->routing->later, now_ns);
}

/* Requests that were sent have failed; the others are routed again. */
void routed_on_loss(struct connection *c, uint32_t first, uint32_t in_flight, uint32_t unwritten,
		    unsigned status, uint64_t now_ns)
{
	struct load_thread *t = c->thread;

	routing_trouble(c, now_ns);
	if (t->replay)
		lane_lose(t, c);
	for (uint32_t i = 0; i < in_flight; i++) {
		struct pending_request *p = &c->pending[(first + i) % c->ring_size];

		if (p->operation == NO_OPERATION)
			continue;
		if (t->plan->workload->operations[p->operation].internal)
			t->in_flight--;
		else if (i >= in_flight - unwritten && !t->stopping)
			put_off(t, &t->routing->later, p);
		else
			end_without(t, c->group, c->id, p, now_ns, status);
	}
}

/* ---- redirects and refusals ---- */

enum refusal { REFUSAL_NONE, REFUSAL_MOVED, REFUSAL_ASK, REFUSAL_LATER };

static enum refusal refusal_of(const char *word, bool *outage)
{
	static const struct {
		const char *word;
		enum refusal refusal;
		bool outage; /* the keys have no server now */
	} all[] = {
	    {"MOVED", REFUSAL_MOVED, false},	 {"ASK", REFUSAL_ASK, false},
	    {"TRYAGAIN", REFUSAL_LATER, false},	 {"CLUSTERDOWN", REFUSAL_LATER, true},
	    {"READONLY", REFUSAL_LATER, true},	 {"LOADING", REFUSAL_LATER, true},
	    {"MASTERDOWN", REFUSAL_LATER, true},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (strcmp(word, all[i].word) == 0) {
			*outage = all[i].outage;
			return all[i].refusal;
		}
	}
	return REFUSAL_NONE;
}

/* The request will be sent elsewhere, with its transaction. */
static void leave(struct connection *c, const struct pending_request *p)
{
	struct pending_request discard;

	if (c->thread->replay && lane_leave(c->thread, c, p, &discard))
		put_own(c, &discard, false);
}

/* Follows "3999 127.0.0.1:6381". False: it leads nowhere. */
static bool follow(struct connection *c, struct pending_request *p, bool asking)
{
	struct load_thread *t = c->thread;
	struct nodes *n = t->routing->nodes;
	uint32_t slot;
	uint16_t node;

	if (p->tries >= REDIRECTS_MAX || !nodes_redirect(n, c->scan.resp.rest, c->group->node, &slot, &node))
		return false;
	if (!asking && !routing_step(t, p)->route.reads && atomic_load(&n->owner[slot]) != node) {
		atomic_store(&n->owner[slot], node);
		nodes_note_change(n);
	}
	nodes_look(n);
	p->tries++;
	leave(c, p);
	send_to(t, p, node, asking);
	return true;
}

bool routed_redirect(struct connection *c, const struct pending_request *answered, uint64_t now_ns)
{
	struct load_thread *t = c->thread;
	struct pending_request p = *answered;
	bool outage = false;
	enum refusal refusal = refusal_of(c->scan.resp.word, &outage);

	if (t->plan->workload->operations[p.operation].internal) {
		t->in_flight--; /* the recorded command after it shows whether this matters */
		return true;
	}
	if (refusal == REFUSAL_NONE || !protocol_of(t->plan->workload->protocol)->redirects)
		return false;
	if (outage)
		routing_trouble(c, now_ns);
	if (refusal == REFUSAL_LATER && now_ns - p.intended_ns < t->plan->retry_ns && !t->stopping) {
		p.tries = 1; /* waiting ends with --retry; later redirects are counted from zero */
		nodes_look(t->routing->nodes);
		leave(c, &p);
		put_off(t, &t->routing->later, &p);
	} else if (refusal == REFUSAL_LATER || !follow(c, &p, refusal == REFUSAL_ASK)) {
		return false;
	}
	stats_redirect(t->stats, c->group->node,
		       refusal == REFUSAL_MOVED ? REDIRECT_MOVED
		       : refusal == REFUSAL_ASK ? REDIRECT_ASK
						: REDIRECT_LATER);
	return true;
}

void routed_step(struct connection *c, const struct pending_request *p)
{
	/* A command without a key (WAIT) concerns the connection it is sent on. */
	if (routing_step(c->thread, p)->route.kind == ROUTE_ANY)
		put_on(c, p, false);
	else
		routed_send(c->thread, p);
}

/* ---- taking requests ---- */

/* Sends queued requests for which there is space. In a replay a later one may have space although the first
 * has not. */
static void serve_queue(struct group *g, struct pending_queue *w, bool asking)
{
	struct pending_request p;
	struct load_thread *t = g->connections[0].thread;

	for (uint32_t count = w->count; count > 0 && connection_list_first(g) && pending_queue_pop(w, &p);
	     count--)
		if (!put_in(t, g, &p, asking))
			pending_queue_push(w, &p);
}

/* A connection is available, or has space again. */
void routed_on_room(struct connection *c, uint64_t now_ns)
{
	connection_list_update(c);
	serve_queue(c->group, &c->group->asks, true);
	serve_queue(c->group, &c->group->queue, false);
	c->thread->model->pump(c->thread, now_ns);
}

void routed_on_connect(struct connection *c)
{
	nodes_set_reachable(c->thread->routing->nodes, c->group->node, true);
}

void routed_take_over(struct load_thread *t, uint64_t now_ns)
{
	if (!t->routing->flushing)
		t->model->pump(t, now_ns);
}

/* ---- waiting requests ---- */

static bool waited_too_long(const struct load_plan *plan, const struct pending_request *p, uint64_t now_ns)
{
	uint64_t limit_ns =
	    plan->timeout_ns && plan->timeout_ns < plan->retry_ns ? plan->timeout_ns : plan->retry_ns;

	/* No time has passed: it may have arrived here after now_ns was read. */
	return p->intended_ns + limit_ns <= now_ns;
}

/* Gives up requests that have waited too long for one server. The oldest are first, except those that were
 * redirected once. */
static void expire(struct load_thread *t, struct group *g, struct pending_queue *w, uint64_t now_ns)
{
	struct pending_request p;

	while (w->count > 0 && waited_too_long(t->plan, &w->ring[w->first], now_ns) &&
	       pending_queue_pop(w, &p))
		end_without(t, g, NO_CONNECTION, &p, now_ns, given_up_status(&p));
}

/* Routes every request that waits there now, once, or gives it up. */
static void send_again(struct load_thread *t, struct group *g, struct pending_queue *w, uint64_t now_ns)
{
	uint32_t count = w->count;
	struct pending_request p;

	while (count-- > 0 && pending_queue_pop(w, &p)) {
		if (waited_too_long(t->plan, &p, now_ns))
			end_without(t, g, NO_CONNECTION, &p, now_ns, given_up_status(&p));
		else
			routed_send(t, &p);
	}
}

static bool anything_waits(const struct load_thread *t)
{
	for (uint32_t i = 0; i < t->group_count; i++)
		if (t->groups[i]->queue.count + t->groups[i]->asks.count > 0)
			return true;
	return t->routing->later.count > 0;
}

static void tick(void *who, uint64_t now_ns)
{
	struct load_thread *t = who;
	struct routing *r = t->routing;
	uint32_t version = atomic_load(&r->nodes->version), groups = t->group_count;
	bool changed = version != r->version;

	r->ticking = false;
	r->version = version;
	if (changed || now_ns >= r->again_ns) {
		r->again_ns = now_ns + AGAIN_NS;
		send_again(t, NULL, &r->later, now_ns);
	}
	for (uint32_t i = 0; i < groups; i++) {
		struct group *g = t->groups[i];

		if (changed) {
			send_again(t, g, &g->queue, now_ns);
			send_again(t, g, &g->asks, now_ns);
		} else {
			expire(t, g, &g->queue, now_ns);
			expire(t, g, &g->asks, now_ns);
		}
	}
	if (anything_waits(t))
		watch_waiting(t, now_ns);
	t->model->pump(t, now_ns);
}

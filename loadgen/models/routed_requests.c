/* SPDX-License-Identifier: MIT */
/* A request's way to its server and back. docs/reference/load.md shows it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "load_models.h"
#include "loadgen/engine.h"
#include "loadgen/models.h"
#include "loadgen/nodes.h"
#include "recording/recording.h"

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
	if (refusal == REFUSAL_LATER && now_ns - p.intended_ns < t->plan->options->retry_ns && !t->stopping) {
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
	uint64_t limit_ns = plan->options->timeout_ns && plan->options->timeout_ns < plan->options->retry_ns
				? plan->options->timeout_ns
				: plan->options->retry_ns;

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

/* The load on several servers (load_models.h). A closed loop keeps -c times -P requests outstanding over
 * all servers, as with one server. Each server has -c connections (over all threads), so a request waits for
 * a connection only if its server is in trouble. In an open loop all due requests are taken at once, so that
 * those waiting for one server delay no others. */

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
	uint64_t most = (uint64_t)t->connection_count * t->plan->options->pipeline;

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

/* A replay on several servers: a lane has a connection to each server and at most one outstanding request, so
 * that its records are executed in their order whatever the servers answer. */

/* Sends a lane's next record if it is due. */
static void take_record(struct load_thread *t, struct lane *l, uint64_t now_ns)
{
	struct pending_request p;
	uint64_t due_ns;

	lane_skip_refused(t, l, now_ns);
	due_ns = lane_due_ns(t, l);
	if (l->next == REPLAY_END || due_ns > now_ns)
		return;
	p = lane_take(t, l, due_ns);
	t->in_flight++;
	routed_send(t, &p);
}

static void replay_pump(struct load_thread *t, uint64_t now_ns)
{
	struct replay_thread *rt = t->replay;
	struct lane *l;

	for (uint32_t i = 0; !rt->begun && i < rt->count; i++) {
		if (lane_due_ns(t, &rt->lanes[i]) == PACING_NEVER)
			lane_close(rt, &rt->lanes[i]);
		lane_make_ready(rt, &rt->lanes[i]);
	}
	rt->begun = true;
	while ((l = lanes_next_due(t, now_ns)))
		lane_make_ready(rt, l);
	while ((l = STAILQ_FIRST(&rt->ready_lanes))) {
		STAILQ_REMOVE_HEAD(&rt->ready_lanes, entry);
		l->ready = false;
		if (!rt->replay->timed && now_ns >= t->plan->end_ns)
			lane_close(rt, l);
		else
			take_record(t, l, now_ns);
	}
	routed_flush(t);
	if (rt->open > 0)
		due_arm(t, lanes_due_ns(t));
	finish_if_done(t, now_ns);
}

static bool replay_more(struct load_thread *t, uint64_t now_ns)
{
	if (!t->replay->replay->timed && now_ns >= t->plan->end_ns)
		lanes_end(t, now_ns);
	return t->replay->open > 0;
}

static void replay_free_thread(struct load_thread *t)
{
	lanes_free(t);
	routing_free(t);
}

/* The generator's own command was answered. */
static void on_own_answer(struct connection *c, unsigned status)
{
	(void)status;
	ring_drop(c);
	c->thread->in_flight--;
}

const struct load_model routed_replay = {
    ROUTED,
    .free = replay_free_thread,
    .pump = replay_pump,
    .more = replay_more,
    .fail_unsent = lanes_end,
    .on_own_answer = on_own_answer,
};

/* A thread's view of several servers. Everything here is read while requests are outstanding, so the table of
 * nodes that all threads share is read without a lock (nodes.h). */

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

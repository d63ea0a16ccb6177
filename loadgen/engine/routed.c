/* SPDX-License-Identifier: MIT */
/* The load on several servers: each request goes to the server that its key belongs to, follows redirects,
 * and waits while no server has it. docs/load-routing.md draws the way of a request.
 *
 * A closed loop keeps -c times -P requests on their way over all servers, as it does with one; each server
 * has -c connections (over all threads), so a request only waits for a connection when its server is in
 * trouble. In an open loop all that falls due is taken up at once, so that what waits for one server holds up
 * no other.
 *
 * What is on its way ends exactly once, whatever happens to it: answered, failed with the connection that it
 * was sent on (nobody knows whether it was executed), or given up after --retry or at the end. What was never
 * written finds another way without having failed. The time that it's due, and the time that it was first
 * sent, stay.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nodes.h"
#include "outages.h"
#include "recording/recording.h"
#include "route.h"
#include "thread.h"

const char routed_asking[] = "*1\r\n$6\r\nASKING\r\n";
_Static_assert(sizeof(routed_asking) - 1 == ROUTED_ASKING_BYTES, "the length that send_batch writes");

/* How often what waits is looked at, and sent again without news of the topology; and the most that may wait,
 * before an open loop holds back what is due. */
#define TICK_NS 5000000u
#define AGAIN_NS 20000000u
enum { WAITING_MAX = 8 << 20, REDIRECTS_MAX = 16 };

/* ---- queues ---- */

static void waiting_push(struct waiting *w, const struct pending *p)
{
	if (w->count == w->room) {
		uint32_t room = w->room ? w->room * 2 : 64;
		struct pending *grown = malloc(room * sizeof(*grown));

		if (!grown)
			abort(); /* a request lost here would never end */
		for (uint32_t i = 0; i < w->count; i++)
			grown[i] = w->ring[(w->first + i) % w->room];
		free(w->ring);
		*w = (struct waiting){grown, 0, w->count, room};
	}
	w->ring[(w->first + w->count++) % w->room] = *p;
}

static bool waiting_pop(struct waiting *w, struct pending *p)
{
	if (w->count == 0)
		return false;
	*p = w->ring[w->first];
	w->first = (w->first + 1) % w->room;
	w->count--;
	return true;
}

/* ---- a thread's part ---- */

struct routing {
	struct nodes *nodes;
	struct group *of_node[NODES_MAX];
	struct bytes scratch; /* names of keys */
	struct waiting later; /* nobody serves them now, or a server asked for patience */
	struct connection *to_send, **last;
	uint32_t turn;	   /* spreads what may go to any of several nodes */
	uint32_t version;  /* of the topology when last looked at */
	uint64_t again_ns; /* when what was put off is sent again */
	bool ticking, flushing;
	struct outages outages;
};

int routing_init(struct load_thread *t)
{
	t->routing = calloc(1, sizeof(*t->routing));
	if (!t->routing)
		return -ENOMEM;
	t->routing->nodes = t->plan->nodes;
	t->routing->turn = t->index;
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

void routing_add(struct load_thread *t, struct group *g)
{
	t->routing->of_node[g->node] = g;
}

const struct outages *routing_outages(const struct load_thread *t)
{
	return &t->routing->outages;
}

static void tick(void *who, uint64_t now_ns);

/* Something waits: have a look at it in a moment. */
static void watch_waiting(struct load_thread *t, uint64_t now_ns)
{
	if (t->routing->ticking || t->finished)
		return;
	t->routing->ticking = true;
	timers_add(&t->timers, now_ns + TICK_NS, tick, t);
}

static struct group *group_of(struct load_thread *t, uint16_t node)
{
	struct routing *r = t->routing;
	uint32_t first;

	if (r->of_node[node])
		return r->of_node[node];
	first = atomic_fetch_add(&t->plan->next_connection, t->connection_count);
	r->of_node[node] = load_thread_connect(t, &nodes_at(r->nodes, node)->endpoint, node, NULL, first);
	return r->of_node[node];
}

static const struct step *step_of(const struct load_thread *t, const struct pending *p)
{
	return &t->plan->workload->operations[p->operation]
		    .steps[p->step < STEPS_MAX ? p->step : STEPS_MAX - 1u];
}

static uint32_t slot_of(struct load_thread *t, const struct pending *p)
{
	return route_slot(t->routing->nodes, t->plan->workload, step_of(t, p), p->key, &t->routing->scratch);
}

/* ---- out ---- */

static void put_last(struct connection *c, const struct pending *p)
{
	struct routing *r = c->thread->routing;

	if (c->to_send == 0) {
		c->next_to_send = NULL;
		if (!r->to_send)
			r->last = &r->to_send;
		*r->last = c;
		r->last = &c->next_to_send;
	}
	c->pending[ring_index(c, c->in_flight)] = *p;
	c->in_flight++;
	c->to_send++;
}

/* Puts a request on a connection, behind an ASKING if that is wanted. */
static void put_on(struct connection *c, const struct pending *p, bool asking)
{
	const struct pending ask = {.intended_ns = p->intended_ns, .operation = NO_OPERATION};

	if (asking) {
		put_last(c, &ask);
		c->asks++;
	}
	put_last(c, p);
	c->taken++;
	settle_room(c);
}

/* Writes what was put on connections. */
static void flush(struct load_thread *t)
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

static void put_off(struct load_thread *t, struct waiting *w, const struct pending *p)
{
	struct pending late = *p;
	uint64_t now = ft_now_ns();

	if (!late.intended_ns)
		late.intended_ns = now;
	waiting_push(w, &late);
	watch_waiting(t, now);
}

static void send_to(struct load_thread *t, const struct pending *p, uint16_t node, bool asking)
{
	struct group *g = node == NODE_NONE ? NULL : group_of(t, node);
	struct connection *c = g ? first_with_room(g) : NULL;

	if (c)
		put_on(c, p, asking);
	else
		put_off(t, !g ? &t->routing->later : asking ? &g->asks : &g->queue, p);
}

/* Sends a request where its key belongs now. */
static void send_on(struct load_thread *t, const struct pending *p)
{
	struct routing *r = t->routing;
	uint32_t slot = slot_of(t, p);
	uint16_t node = slot == ROUTE_ANYWHERE
			    ? nodes_any(r->nodes, r->turn++)
			    : nodes_choose(r->nodes, slot, step_of(t, p)->route.reads, r->turn++);

	send_to(t, p, node, false);
}

/* ---- ends ---- */

void routed_ended(struct load_thread *t, struct group *g, const struct pending *p, uint64_t now_ns,
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
	slot = slot_of(t, p);
	if (slot == ROUTE_ANYWHERE)
		return;
	if (status_is_error(status)) {
		outages_failed(o, slot);
		return;
	}
	nodes_reached(t->routing->nodes, g->node, true);
	/* What a replica may answer says nothing of the primary. */
	if (t->routing->nodes->read_from == READ_PRIMARY || !step_of(t, p)->route.reads)
		outages_answered(o, slot, g->node, p->intended_ns, now_ns);
}

/* Whose figures have a request that waited for no server in particular: the owner of its key, if there is
 * one. */
static struct group *group_to_blame(struct load_thread *t, const struct pending *p)
{
	uint32_t slot = slot_of(t, p);
	uint16_t owner = slot == ROUTE_ANYWHERE ? NODE_NONE : nodes_choose(t->routing->nodes, slot, false, 0);

	return owner == NODE_NONE ? NULL : t->routing->of_node[owner];
}

/* Ends a request that has no connection any more, or never had one. */
static void end_without(struct load_thread *t, struct group *g, uint32_t connection, struct pending *p,
			uint64_t now_ns, unsigned status)
{
	if (!p->start_ns)
		p->start_ns = now_ns;
	if (!p->intended_ns)
		p->intended_ns = now_ns;
	record_end(t, connection, p, now_ns, status, 0);
	if (!g)
		g = group_to_blame(t, p);
	if (g)
		routed_ended(t, g, p, now_ns, status);
	t->in_flight--;
}

static unsigned given_up_status(const struct pending *p)
{
	return p->start_ns ? FT_STATUS_TIMEOUT : FT_STATUS_UNSENT;
}

static void give_up_queue(struct load_thread *t, struct group *g, struct waiting *w, uint64_t now_ns)
{
	struct pending p;

	while (waiting_pop(w, &p))
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

/* ---- what the topology says ---- */

/* Opens an outage of the slots that are the node's now, if there are any. Each refused connect() and each
 * CLUSTERDOWN asks for it, so whether there is one already is seen before the slots are. */
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

void routed_trouble(struct connection *c, uint64_t now_ns)
{
	struct load_thread *t = c->thread;

	if (!t->stopping && now_ns < t->plan->end_ns)
		begin_outage(t, c->group, now_ns);
	nodes_reached(t->routing->nodes, c->group->node, false);
	nodes_look(t->routing->nodes);
}

void routed_lost(struct connection *c, uint32_t first, uint32_t in_flight, uint32_t unwritten,
		 unsigned status, uint64_t now_ns)
{
	struct load_thread *t = c->thread;

	routed_trouble(c, now_ns);
	for (uint32_t i = 0; i < in_flight; i++) {
		struct pending *p = &c->pending[(first + i) % c->ring_size];

		if (p->operation == NO_OPERATION)
			continue;
		if (i >= in_flight - unwritten && !t->stopping)
			put_off(t, &t->routing->later, p);
		else
			end_without(t, c->group, c->id, p, now_ns, status);
	}
}

/* ---- answers that are no answer ---- */

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

/* Follows "3999 127.0.0.1:6381". False: it leads nowhere. */
static bool follow(struct connection *c, struct pending *p, bool asking)
{
	struct load_thread *t = c->thread;
	struct nodes *n = t->routing->nodes;
	uint32_t slot;
	uint16_t node;

	if (p->tries >= REDIRECTS_MAX || !nodes_redirect(n, c->scan.resp.rest, c->group->node, &slot, &node))
		return false;
	if (!asking && !step_of(t, p)->route.reads && atomic_load(&n->owner[slot]) != node) {
		atomic_store(&n->owner[slot], node);
		nodes_changed(n);
	}
	nodes_look(n);
	p->tries++;
	send_to(t, p, node, asking);
	return true;
}

bool routed_again(struct connection *c, const struct pending *answered, uint64_t now_ns)
{
	struct load_thread *t = c->thread;
	struct pending p = *answered;
	bool outage = false;
	enum refusal refusal = refusal_of(c->scan.resp.word, &outage);

	if (refusal == REFUSAL_NONE || t->plan->workload->protocol != PROTOCOL_REDIS)
		return false;
	if (outage)
		routed_trouble(c, now_ns);
	if (refusal == REFUSAL_LATER && now_ns - p.intended_ns < t->plan->retry_ns && !t->stopping) {
		p.tries = 1; /* patience ends with --retry; redirects that come after it are counted anew */
		nodes_look(t->routing->nodes);
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

void routed_step(struct connection *c, const struct pending *p)
{
	/* What has no key (WAIT) is about the connection it comes on. */
	if (step_of(c->thread, p)->route.kind == ROUTE_ANY)
		put_on(c, p, false);
	else
		send_on(c->thread, p);
}

/* ---- more ---- */

/* Queued requests for which there is room. */
static void serve_queue(struct group *g)
{
	struct connection *c;
	struct pending p;

	while (g->asks.count > 0 && (c = first_with_room(g)) && waiting_pop(&g->asks, &p))
		put_on(c, &p, true);
	while (g->queue.count > 0 && (c = first_with_room(g)) && waiting_pop(&g->queue, &p))
		put_on(c, &p, false);
}

static bool take_another(const struct load_thread *t, uint64_t now_ns)
{
	if (t->stopping)
		return false;
	if (t->plan->open_loop)
		return t->pacing.due_ns <= now_ns && t->in_flight < WAITING_MAX;
	return t->left > 0 && now_ns < t->plan->end_ns &&
	       t->in_flight < (uint64_t)t->connection_count * t->plan->pipeline;
}

void routed_pump(struct load_thread *t, uint64_t now_ns)
{
	const struct load_plan *plan = t->plan;

	while (take_another(t, now_ns)) {
		uint32_t operation = choose_operation(&plan->mix, &t->chooser);
		const struct pending p = {
		    .intended_ns = plan->open_loop ? t->pacing.due_ns : 0,
		    .key = choose_key(plan->workload, &plan->mix, &t->chooser, operation, 0),
		    .operation = (uint8_t)operation,
		};

		if (plan->open_loop)
			pacing_take(&t->pacing);
		else
			t->left--;
		t->in_flight++;
		send_on(t, &p);
	}
	flush(t);
	if (plan->open_loop)
		arm_due(t);
	check_finished(t, now_ns);
}

void routed_room(struct connection *c, uint64_t now_ns)
{
	settle_room(c);
	serve_queue(c->group);
	routed_pump(c->thread, now_ns);
}

void routed_arrived(struct connection *c)
{
	nodes_reached(c->thread->routing->nodes, c->group->node, true);
}

void routed_settle(struct load_thread *t, uint64_t now_ns)
{
	if (!t->routing->flushing)
		routed_pump(t, now_ns);
}

/* ---- what waits ---- */

static bool waited_too_long(const struct load_plan *plan, const struct pending *p, uint64_t now_ns)
{
	uint64_t limit_ns =
	    plan->timeout_ns && plan->timeout_ns < plan->retry_ns ? plan->timeout_ns : plan->retry_ns;

	/* No difference: it may have come here after now_ns was read. */
	return p->intended_ns + limit_ns <= now_ns;
}

/* Gives up what has waited too long for one server. The oldest are first, but for those that were sent away
 * once. */
static void expire(struct load_thread *t, struct group *g, struct waiting *w, uint64_t now_ns)
{
	struct pending p;

	while (w->count > 0 && waited_too_long(t->plan, &w->ring[w->first], now_ns) && waiting_pop(w, &p))
		end_without(t, g, NO_CONNECTION, &p, now_ns, given_up_status(&p));
}

/* All that waits there now, once, finds its way again, or is given up. */
static void send_again(struct load_thread *t, struct group *g, struct waiting *w, uint64_t now_ns)
{
	uint32_t count = w->count;
	struct pending p;

	while (count-- > 0 && waiting_pop(w, &p)) {
		if (waited_too_long(t->plan, &p, now_ns))
			end_without(t, g, NO_CONNECTION, &p, now_ns, given_up_status(&p));
		else
			send_on(t, &p);
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
	routed_pump(t, now_ns);
}

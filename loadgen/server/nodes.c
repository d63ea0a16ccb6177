/* SPDX-License-Identifier: MIT */
/* The table of servers, and their outages.
 *
 * Only adding a node takes the lock, because two threads may learn of a new server at once. The node is
 * filled in completely, including its resolved address, before the count makes it visible. Everything else is
 * single words, so choosing a server for a request takes no lock. */
#include "loadgen/nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/text.h"
#include "loadgen/cluster.h"

int nodes_init(struct nodes *n, const struct options *o)
{
	memset(n, 0, sizeof(*n));
	n->options = o;
	n->kind = o->deployment;
	n->read_from = o->read_from;
	pthread_mutex_init(&n->lock, NULL);
	for (uint32_t i = 0; i < CLUSTER_SLOTS; i++)
		atomic_store(&n->owner[i], NODE_NONE);
	n->look_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return n->look_fd < 0 ? -errno : 0;
}

static void node_free(struct node *node)
{
	server_free(&node->server);
	free((char *)node->server.address.host);
	free((char *)node->server.address.socket);
	free(node);
}

void nodes_free(struct nodes *n)
{
	uint32_t count = atomic_load(&n->count);

	for (uint32_t i = 0; i < count; i++)
		node_free(nodes_at(n, (uint16_t)i));
	ketama_free(&n->ketama);
	if (n->look_fd >= 0)
		close(n->look_fd);
	pthread_mutex_destroy(&n->lock);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static uint16_t find(const struct nodes *n, const struct server_address *a)
{
	uint32_t count = atomic_load(&n->count);

	for (uint32_t i = 0; i < count; i++) {
		const struct server_address *b = &nodes_at(n, (uint16_t)i)->server.address;

		if (a->socket ? same_text(a->socket, b->socket)
			      : !b->socket && a->port == b->port && same_text(a->host, b->host))
			return (uint16_t)i;
	}
	return NODE_NONE;
}

static struct node *node_new(const struct nodes *n, const struct server_address *a, char *error, size_t size)
{
	struct node *node = calloc(1, sizeof(*node));
	struct server_address own = *a;
	char text[sizeof(node->name)];

	own.host = a->host ? strdup(a->host) : NULL;
	own.socket = a->socket ? strdup(a->socket) : NULL;
	if (!node || (a->host && !own.host) || (a->socket && !own.socket)) {
		free((char *)own.host);
		free((char *)own.socket);
		free(node);
		snprintf(error, size, "not enough memory for another server");
		return NULL;
	}
	address_text(&own, text, sizeof(text));
	visible_text(node->name, sizeof(node->name), text, strlen(text));
	server_init(&node->server, n->options, &own,
		    n->kind == DEPLOYMENT_CLUSTER && n->read_from != READ_PRIMARY);
	if (server_find(&node->server, error, size)) {
		node_free(node);
		return NULL;
	}
	node->endpoint = server_endpoint(&node->server);
	return node;
}

uint16_t nodes_add(struct nodes *n, const struct server_address *a, char *error, size_t size)
{
	uint16_t number = find(n, a);
	struct node *node;
	uint32_t count;

	if (number != NODE_NONE)
		return number;
	pthread_mutex_lock(&n->lock);
	number = find(n, a);
	count = atomic_load(&n->count);
	if (number == NODE_NONE && count < NODES_MAX) {
		node = node_new(n, a, error, size);
		if (node) {
			atomic_store_explicit(&n->list[count], node, memory_order_release);
			atomic_store(&n->count, count + 1);
			number = (uint16_t)count;
		}
	} else if (number == NODE_NONE) {
		snprintf(error, size, "more than %d servers", NODES_MAX);
	}
	pthread_mutex_unlock(&n->lock);
	return number;
}

void nodes_note_change(struct nodes *n)
{
	atomic_fetch_add(&n->version, 1);
}

void nodes_look(struct nodes *n)
{
	uint64_t one = 1;

	if (!atomic_exchange(&n->look_wanted, true) && write(n->look_fd, &one, sizeof(one)) < 0) {
		/* Writing one to an eventfd fails only if 2^64 - 2 are unread. */
	}
}

void nodes_set_reachable(struct nodes *n, uint16_t number, bool reached)
{
	struct node *node = nodes_at(n, number);

	if (atomic_load_explicit(&node->down, memory_order_relaxed) == !reached)
		return;
	atomic_store(&node->down, !reached);
	nodes_note_change(n);
}

static bool is_up(const struct nodes *n, uint16_t number)
{
	return !atomic_load_explicit(&nodes_at(n, number)->down, memory_order_relaxed);
}

/* The candidate with the shortest round-trip time. */
static uint16_t nearest(const struct nodes *n, const uint16_t *all, uint32_t count)
{
	uint64_t best_ns = UINT64_MAX;
	uint16_t best = NODE_NONE;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t rtt_ns = atomic_load(&nodes_at(n, all[i])->rtt_ns);

		if (rtt_ns > 0 && rtt_ns < best_ns && is_up(n, all[i])) {
			best_ns = rtt_ns;
			best = all[i];
		}
	}
	return best == NODE_NONE ? all[0] : best;
}

uint16_t nodes_choose(const struct nodes *n, uint32_t slot, bool reads, uint32_t rotation)
{
	uint16_t owner = atomic_load_explicit(&n->owner[slot], memory_order_relaxed);
	uint16_t all[NODE_REPLICAS_MAX + 1];
	const struct node *primary;
	uint32_t count = 0, replicas;

	if (!reads || n->read_from == READ_PRIMARY || owner == NODE_NONE)
		return owner;
	primary = nodes_at(n, owner);
	replicas = atomic_load_explicit(&primary->replica_count, memory_order_relaxed);
	if (n->read_from != READ_REPLICA)
		all[count++] = owner;
	for (uint32_t i = 0; i < replicas; i++) {
		uint16_t replica = atomic_load_explicit(&primary->replicas[i], memory_order_relaxed);

		if (replica != NODE_NONE && is_up(n, replica))
			all[count++] = replica;
	}
	if (count == 0)
		return owner; /* an answer from the primary is better than none */
	return n->read_from == READ_NEAREST ? nearest(n, all, count) : all[rotation % count];
}

uint16_t nodes_any(const struct nodes *n, uint32_t rotation)
{
	uint32_t slots = n->kind == DEPLOYMENT_CLUSTER ? CLUSTER_SLOTS : n->options->server_count;

	if (n->kind == DEPLOYMENT_PRIMARY)
		return atomic_load_explicit(&n->owner[0], memory_order_relaxed);
	/* A step that is coprime to 2^14 visits the owners of all ranges. */
	for (uint32_t i = 0; i < slots; i++) {
		uint16_t owner =
		    atomic_load_explicit(&n->owner[(rotation * 5461u + i) % slots], memory_order_relaxed);

		if (owner != NODE_NONE)
			return owner;
	}
	return NODE_NONE;
}

bool nodes_serves(const struct nodes *n, uint16_t number)
{
	for (uint32_t i = 0; i < CLUSTER_SLOTS; i++) {
		uint16_t owner = atomic_load_explicit(&n->owner[i], memory_order_relaxed);
		const struct node *primary = owner == NODE_NONE ? NULL : nodes_at(n, owner);

		if (owner == number)
			return true;
		for (uint32_t k = 0;
		     primary && n->read_from != READ_PRIMARY && k < atomic_load(&primary->replica_count); k++)
			if (atomic_load(&primary->replicas[k]) == number)
				return true;
		if (n->kind == DEPLOYMENT_PRIMARY)
			break;
	}
	return false;
}

uint32_t nodes_serving(const struct nodes *n)
{
	uint32_t count = atomic_load(&n->count), serving = 0;

	for (uint32_t i = 0; i < count; i++)
		serving += nodes_serves(n, (uint16_t)i);
	return serving;
}

bool nodes_redirect(struct nodes *n, const char *text, uint16_t from, uint32_t *slot, uint16_t *node)
{
	const struct node *source = nodes_at(n, from);
	char host[256], error[256], *end;
	const char *colon, *begin;
	unsigned long number, port;
	struct server_address a = source->server.address;

	number = strtoul(text, &end, 10);
	if (end == text || *end != ' ' || number >= CLUSTER_SLOTS)
		return false;
	begin = end + 1;
	colon = strrchr(begin, ':'); /* the last one: IPv6 addresses contain more */
	if (!colon || (size_t)(colon - begin) >= sizeof(host))
		return false;
	port = strtoul(colon + 1, &end, 10);
	if (end == colon + 1 || *end || port == 0 || port > 65535)
		return false;
	memcpy(host, begin, (size_t)(colon - begin));
	host[colon - begin] = 0;
	if (host[0] && strcmp(host, "?") != 0)
		a.host = host;
	if (!a.host)
		return false;
	a.socket = NULL;
	a.port = (uint32_t)port;
	*slot = (uint32_t)number;
	*node = nodes_add(n, &a, error, sizeof(error));
	return *node != NODE_NONE;
}

/* Each slot stores the number of its latest outage. An answer finds it with one lookup. A request that was
 * due before the outage ended still counts as delayed when others have already been answered. */

bool outages_is_open(const struct outages *o, uint16_t node)
{
	for (uint32_t i = o->count; i > 0; i--)
		if (o->list[i - 1].node == node)
			return !o->list[i - 1].first_ok_ns;
	return false;
}

bool outages_begin(struct outages *o, uint16_t node, uint64_t last_ok_ns, uint64_t now_ns)
{
	if (outages_is_open(o, node))
		return false;
	if (o->count == OUTAGES_MAX) {
		o->lost++;
		return false;
	}
	o->list[o->count++] =
	    (struct outage){.node = node, .after = node, .noticed_ns = now_ns, .last_ok_ns = last_ok_ns};
	o->open++;
	return true;
}

void outages_mark(struct outages *o, uint32_t slot)
{
	o->of_slot[slot] = (uint8_t)o->count;
}

void outages_note_answer(struct outages *o, uint32_t slot, uint16_t node, uint64_t intended_ns,
			 uint64_t now_ns)
{
	struct outage *x = o->of_slot[slot] ? &o->list[o->of_slot[slot] - 1] : 0;

	if (!x)
		return;
	if (!x->first_ok_ns) {
		x->first_ok_ns = now_ns;
		x->after = node;
		o->open--;
		if (now_ns > o->latest_end_ns)
			o->latest_end_ns = now_ns;
	}
	if (intended_ns >= x->first_ok_ns)
		return;
	x->delayed++;
	if (now_ns - intended_ns > x->longest_ns)
		x->longest_ns = now_ns - intended_ns;
}

void outages_note_failure(struct outages *o, uint32_t slot)
{
	if (o->of_slot[slot])
		o->list[o->of_slot[slot] - 1].failed++;
}

/* Whether two threads saw the same outage: the same node at overlapping times. An outage without an end is
 * still open. */
static bool same(const struct outage *a, const struct outage *b)
{
	return a->node == b->node && (!a->first_ok_ns || b->noticed_ns <= a->first_ok_ns) &&
	       (!b->first_ok_ns || a->noticed_ns <= b->first_ok_ns);
}

static void join(struct outage *into, const struct outage *from)
{
	if (from->noticed_ns < into->noticed_ns)
		into->noticed_ns = from->noticed_ns;
	if (from->last_ok_ns > into->last_ok_ns)
		into->last_ok_ns = from->last_ok_ns;
	if (from->first_ok_ns && (!into->first_ok_ns || from->first_ok_ns < into->first_ok_ns)) {
		into->first_ok_ns = from->first_ok_ns;
		into->after = from->after;
	}
	into->failed += from->failed;
	into->delayed += from->delayed;
	if (from->longest_ns > into->longest_ns)
		into->longest_ns = from->longest_ns;
}

void outages_drop_unfelt(struct outages *all)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < all->count; i++)
		if (all->list[i].failed + all->list[i].delayed > 0)
			all->list[count++] = all->list[i];
	all->count = count;
}

void outages_add(struct outages *all, const struct outages *of_thread)
{
	all->lost += of_thread->lost;
	for (uint32_t i = 0; i < of_thread->count; i++) {
		const struct outage *x = &of_thread->list[i];
		uint32_t k = 0;

		while (k < all->count && !same(&all->list[k], x))
			k++;
		if (k < all->count)
			join(&all->list[k], x);
		else if (all->count < OUTAGES_MAX)
			all->list[all->count++] = *x;
		else
			all->lost++;
	}
}

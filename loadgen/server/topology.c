/* SPDX-License-Identifier: MIT */
/* Asks the servers of a deployment who has what.
 *
 * Answers are compared with the table, and only differences are stored and noted: one note for each pair of
 * an old and a new owner, so that a failover is one line in the log instead of one per slot. */
#include "loadgen/nodes.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "loadgen/cluster.h"
#include "loadgen/net.h"
#include "recording/json_block.h"

/* Time-out during the load: a server that doesn't answer must not prevent asking another one. */
#define PATIENCE_NS 500000000u
enum { REST_MS = 1000, TROUBLE_MS = 20, RTT_TRIES = 5, HOST_BYTES = 256 };

struct topology {
	struct nodes *nodes;
	struct ft_writer *log; /* NULL: none */
	struct link *link;     /* the link that answered last; NULL: none */
	uint16_t asked;	       /* the node that it leads to; for a Sentinel, its number */
	uint32_t next_index;   /* the next one to ask */
	uint64_t patience_ns;  /* of links; 0: the default */
	int stop_fd;
	pthread_t handle;
	struct server *sentinels; /* as many as in the options */
	struct options *sentinel_options;
};

/* Opens a link to a node. The main thread may connect to the same server at this moment, with a different
 * time-out. */
static struct link *enter_node(const struct topology *t, uint16_t node, char *error, size_t size)
{
	struct server s = server_twin(&nodes_at(t->nodes, node)->server);

	s.patience_ns = t->patience_ns;
	return server_enter(&s, 0, error, size);
}

/* ---- changes ---- */

static const char *name_of(const struct nodes *n, uint16_t node)
{
	return node == NODE_NONE ? "" : nodes_at(n, node)->name;
}

static void note(const struct topology *t, const char *what, uint16_t from, uint16_t to, uint32_t slots)
{
	json_t *n;

	if (!t->log)
		return;
	n = json_note(ft_now_ns(), "topology");
	json_put_text(n, "what", what);
	json_put_text(n, "from", name_of(t->nodes, from));
	json_put_text(n, "to", name_of(t->nodes, to));
	if (slots)
		json_put_count(n, "slots", slots);
	write_json_note(t->log, n);
}

/* Sets owners. Each pair of an old and a new owner becomes a note. */
static void set_owners(const struct topology *t, const uint16_t *owner, uint32_t count)
{
	struct nodes *n = t->nodes;
	bool changed = false;

	for (uint32_t i = 0; i < count; i++) {
		uint16_t before = atomic_load(&n->owner[i]), after = owner[i];
		uint32_t slots = 0;

		if (before == after)
			continue;
		for (uint32_t k = i; k < count; k++) {
			if (atomic_load(&n->owner[k]) != before || owner[k] != after)
				continue;
			atomic_store(&n->owner[k], after);
			slots++;
		}
		note(t, n->kind == DEPLOYMENT_CLUSTER ? "slots" : "primary", before, after,
		     n->kind == DEPLOYMENT_CLUSTER ? slots : 0);
		changed = true;
	}
	if (changed)
		nodes_note_change(n);
}

static void set_replicas(struct node *primary, const uint16_t *replicas, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		atomic_store(&primary->replicas[i], replicas[i]);
	atomic_store(&primary->replica_count, count);
}

/* ---- a cluster ---- */

static const char *text_of(const redisReply *r)
{
	return r && (r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS) ? r->str : NULL;
}

/* A node in the answer to CLUSTER SLOTS: [address, port, id, ...]. A node without an address is the one that
 * was asked. */
static uint16_t read_node(struct nodes *n, uint16_t asked, const redisReply *r)
{
	const char *host = r->type == REDIS_REPLY_ARRAY && r->elements >= 2 ? text_of(r->element[0]) : NULL;
	struct server_address a = nodes_at(n, asked)->server.address;
	char error[256];

	if (r->type != REDIS_REPLY_ARRAY || r->elements < 2 || r->element[1]->type != REDIS_REPLY_INTEGER ||
	    r->element[1]->integer <= 0 || r->element[1]->integer > 65535)
		return NODE_NONE;
	if (host && *host && strcmp(host, "?") != 0)
		a.host = host;
	if (!a.host)
		return NODE_NONE;
	a.socket = NULL;
	a.port = (uint32_t)r->element[1]->integer;
	return nodes_add(n, &a, error, sizeof(error));
}

/* [first, last, primary, replica, ...] */
static void read_range(struct nodes *n, uint16_t asked, const redisReply *r, uint16_t *owner)
{
	uint16_t replicas[NODE_REPLICAS_MAX], primary;
	uint32_t count = 0;

	if (r->type != REDIS_REPLY_ARRAY || r->elements < 3 || r->element[0]->type != REDIS_REPLY_INTEGER ||
	    r->element[1]->type != REDIS_REPLY_INTEGER)
		return;
	primary = read_node(n, asked, r->element[2]);
	if (primary == NODE_NONE)
		return;
	for (size_t i = 3; i < r->elements && count < NODE_REPLICAS_MAX; i++) {
		uint16_t replica = read_node(n, asked, r->element[i]);

		if (replica != NODE_NONE)
			replicas[count++] = replica;
	}
	set_replicas(nodes_at(n, primary), replicas, count);
	for (long long slot = 0; slot < CLUSTER_SLOTS; slot++)
		if (slot >= r->element[0]->integer && slot <= r->element[1]->integer)
			owner[slot] = primary;
}

/* 0: success. -1: the answer was not usable; `error` is the end of a sentence. */
static int learn_slots(const struct topology *t, char *error, size_t size)
{
	static const char *const words[] = {"CLUSTER", "SLOTS"};
	redisReply *r = link_ask(t->link, 2, words);
	uint16_t owner[CLUSTER_SLOTS];
	int result = -1;

	for (uint32_t i = 0; i < CLUSTER_SLOTS; i++)
		owner[i] = NODE_NONE;
	if (!r) {
		snprintf(error, size, "%s", link_error(t->link));
	} else if (r->type == REDIS_REPLY_ERROR) {
		snprintf(error, size, "%.150s", r->str);
	} else if (r->type == REDIS_REPLY_ARRAY) {
		for (size_t i = 0; i < r->elements; i++)
			read_range(t->nodes, t->asked, r->element[i], owner);
		set_owners(t, owner, CLUSTER_SLOTS);
		result = 0;
	} else {
		snprintf(error, size, "unexpected answer to CLUSTER SLOTS");
	}
	if (r)
		freeReplyObject(r);
	return result;
}

static uint32_t unserved_slots(const struct nodes *n)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < CLUSTER_SLOTS; i++)
		count += atomic_load(&n->owner[i]) == NODE_NONE;
	return count;
}

/* ---- a primary ---- */

/* The answer to ROLE: true for a primary, whose replicas are added. */
static bool learn_role(struct nodes *n, struct link *l, uint16_t node)
{
	static const char *const words[] = {"ROLE"};
	redisReply *r = link_ask(l, 1, words);
	const char *role =
	    r && r->type == REDIS_REPLY_ARRAY && r->elements >= 3 ? text_of(r->element[0]) : NULL;
	const redisReply *list = role && strcmp(role, "master") == 0 ? r->element[2] : NULL;
	uint16_t replicas[NODE_REPLICAS_MAX];
	uint32_t count = 0;
	char error[256];
	bool primary = false;

	if (list && list->type == REDIS_REPLY_ARRAY) {
		for (size_t i = 0; i < list->elements && count < NODE_REPLICAS_MAX; i++) {
			const redisReply *x = list->element[i]; /* [address, port as text, offset] */
			struct server_address a = nodes_at(n, node)->server.address;

			if (x->type != REDIS_REPLY_ARRAY || x->elements < 2 || !text_of(x->element[0]) ||
			    !text_of(x->element[1]))
				continue;
			a.host = x->element[0]->str;
			a.port = (uint32_t)strtoul(x->element[1]->str, NULL, 10);
			a.socket = NULL;
			replicas[count] = nodes_add(n, &a, error, sizeof(error));
			count += replicas[count] != NODE_NONE;
		}
		set_replicas(nodes_at(n, node), replicas, count);
		primary = true;
	}
	if (r)
		freeReplyObject(r);
	return primary;
}

/* The primary that a Sentinel names. It is accepted when it reports the role itself. -1: `error`. */
static int learn_primary(const struct topology *t, char *error, size_t size)
{
	const struct options *o = t->nodes->options;
	const char *const words[] = {"SENTINEL", "get-master-addr-by-name", o->master};
	redisReply *r = link_ask(t->link, 3, words);
	struct server_address a = t->sentinels[t->asked].address;
	struct link *l = NULL;
	uint16_t node = NODE_NONE;
	int result = -1;

	if (!r) {
		snprintf(error, size, "%s", link_error(t->link));
	} else if (r->type == REDIS_REPLY_ERROR) {
		snprintf(error, size, "%.150s", r->str);
	} else if (r->type != REDIS_REPLY_ARRAY || r->elements != 2 || !text_of(r->element[0]) ||
		   !text_of(r->element[1])) {
		snprintf(error, size, "the Sentinel monitors no primary named \"%s\" (--master)", o->master);
	} else {
		a.host = r->element[0]->str;
		a.port = (uint32_t)strtoul(r->element[1]->str, NULL, 10);
		a.socket = NULL;
		node = nodes_add(t->nodes, &a, error, size);
		/* A known primary needs no question every second. */
		if (node != NODE_NONE && node == atomic_load(&t->nodes->owner[0]) &&
		    !atomic_load(&nodes_at(t->nodes, node)->down) && o->read_from == READ_PRIMARY)
			result = 0;
		else if (node != NODE_NONE)
			l = enter_node(t, node, error, size);
	}
	if (l && learn_role(t->nodes, l, node)) {
		set_owners(t, &node, 1);
		result = 0;
	} else if (l) {
		snprintf(error, size,
			 "the Sentinel names %s as the primary, but that server does not report the role "
			 "master (yet)",
			 name_of(t->nodes, node));
	}
	link_free(l);
	if (r)
		freeReplyObject(r);
	return result;
}

/* A primary without Sentinel stays the primary, but its replicas may change. */
static int learn_replicas(const struct topology *t, char *error, size_t size)
{
	const uint16_t node = 0;

	if (!learn_role(t->nodes, t->link, node)) {
		snprintf(error, size, "the server is a replica. Name its primary");
		return -1;
	}
	set_owners(t, &node, 1);
	return 0;
}

/* ---- choosing a server to ask ---- */

static bool by_sentinel(const struct nodes *n)
{
	return n->kind == DEPLOYMENT_PRIMARY && n->options->sentinel_count > 0;
}

/* Opens a link to the next Sentinel, or to the next node that isn't known to be down. False: `error`. */
static bool enter_next(struct topology *t, char *error, size_t size)
{
	struct nodes *n = t->nodes;
	uint32_t count = by_sentinel(n) ? n->options->sentinel_count : atomic_load(&n->count);

	if (n->kind == DEPLOYMENT_PRIMARY && !by_sentinel(n))
		count = 1;
	for (uint32_t i = 0; i < count && !t->link; i++) {
		t->asked = (uint16_t)(t->next_index++ % count);
		if (by_sentinel(n))
			t->link = server_enter(&t->sentinels[t->asked], 0, error, size);
		else if (count == 1 || i + 1 == count || !atomic_load(&nodes_at(n, t->asked)->down))
			t->link = enter_node(t, t->asked, error, size);
	}
	return t->link != NULL;
}

static const char *asked_name(const struct topology *t, char *room, size_t size)
{
	if (!by_sentinel(t->nodes))
		return name_of(t->nodes, t->asked);
	address_text(&t->sentinels[t->asked].address, room, size);
	return room;
}

/* Asks one of them. False: `error`, and the next call asks another one. */
static bool ask_one(struct topology *t, char *error, size_t size)
{
	char why[400] = "", name[300];
	int rc;

	if (!t->link && !enter_next(t, error, size))
		return false;
	rc = t->nodes->kind == DEPLOYMENT_CLUSTER ? learn_slots(t, why, sizeof(why))
	     : by_sentinel(t->nodes)		  ? learn_primary(t, why, sizeof(why))
						  : learn_replicas(t, why, sizeof(why));
	if (rc == 0)
		return true;
	snprintf(error, size, "%s: %s", asked_name(t, name, sizeof(name)), why);
	link_free(t->link);
	t->link = NULL;
	return false;
}

/* The shortest of a few PINGs. */
static void measure_rtt(const struct topology *t)
{
	static const char *const words[] = {"PING"};
	const struct nodes *n = t->nodes;
	uint32_t count = atomic_load(&n->count);
	char error[400];

	for (uint32_t i = 0; i < count; i++) {
		struct node *node = nodes_at(n, (uint16_t)i);
		uint64_t best_ns = UINT64_MAX;
		struct link *l;

		if (atomic_load(&node->rtt_ns))
			continue;
		l = enter_node(t, (uint16_t)i, error, sizeof(error));
		for (int k = 0; l && k < RTT_TRIES; k++) {
			uint64_t since = ft_now_ns(), took;
			redisReply *r = link_ask(l, 1, words);

			took = ft_now_ns() - since;
			if (r && took < best_ns)
				best_ns = took;
			if (r)
				freeReplyObject(r);
		}
		link_free(l);
		atomic_store(&node->rtt_ns, best_ns == UINT64_MAX ? 0 : best_ns);
	}
}

/* ---- set-up ---- */

/* Sentinels have separate passwords, and do not use the primary's users or databases. */
static int prepare_sentinels(struct topology *t, char *error, size_t size)
{
	const struct options *o = t->nodes->options;

	if (!by_sentinel(t->nodes))
		return 0;
	t->sentinels = calloc(o->sentinel_count, sizeof(*t->sentinels));
	t->sentinel_options = malloc(sizeof(*t->sentinel_options));
	if (!t->sentinels || !t->sentinel_options) {
		snprintf(error, size, "not enough memory for the Sentinels");
		return -1;
	}
	*t->sentinel_options = *o;
	t->sentinel_options->user = NULL;
	t->sentinel_options->password = getenv("FORKTAIL_SENTINEL_PASSWORD");
	t->sentinel_options->database = 0;
	for (uint32_t i = 0; i < o->sentinel_count; i++) {
		server_init(&t->sentinels[i], t->sentinel_options, &o->sentinels[i], false);
		t->sentinels[i].patience_ns = t->patience_ns;
	}
	return 0;
}

static void release(struct topology *t)
{
	link_free(t->link);
	for (uint32_t i = 0; t->sentinels && i < t->nodes->options->sentinel_count; i++)
		server_free(&t->sentinels[i]);
	free(t->sentinels);
	free(t->sentinel_options);
}

/* A ring needs all servers, in the order in which they were named. */
static int learn_ring(struct nodes *n, char *error, size_t size)
{
	const struct options *o = n->options;
	const char *names[SERVERS_MAX];
	char text[SERVERS_MAX][300];
	int rc;

	for (uint32_t i = 0; i < o->server_count; i++) {
		const struct server_address *a = &o->servers[i];
		struct server probe;
		uint16_t node;

		rc = server_probe(&probe, o, a, error, size);
		server_free(&probe);
		if (rc)
			return -1;
		node = nodes_add(n, a, error, size);
		if (node == NODE_NONE)
			return -1;
		if (node != i) {
			snprintf(error, size, "%s is named twice", name_of(n, node));
			return -1;
		}
		atomic_store(&n->owner[i], node);
		ketama_name(a, text[i], sizeof(text[i]));
		names[i] = text[i];
	}
	rc = ketama_init(&n->ketama, names, o->server_count);
	if (rc)
		snprintf(error, size, "cannot distribute keys over servers: %s",
			 rc == -ENOMEM ? "not enough memory" : "this host's OpenSSL offers no MD5");
	return rc ? -1 : 0;
}

int topology_learn(struct nodes *n, char *error, size_t size)
{
	const struct options *o = n->options;
	struct topology t = {.nodes = n};
	bool learned = false;
	uint32_t unserved;

	if (n->kind == DEPLOYMENT_RING)
		return learn_ring(n, error, size);
	for (uint32_t i = 0; !by_sentinel(n) && i < o->server_count; i++)
		if (nodes_add(n, &o->servers[i], error, size) == NODE_NONE)
			return -1;
	if (prepare_sentinels(&t, error, size) == 0)
		for (uint32_t i = 0; i < (by_sentinel(n) ? o->sentinel_count : o->server_count) && !learned;
		     i++)
			learned = ask_one(&t, error, size);
	release(&t);
	if (!learned)
		return -1;
	unserved = n->kind == DEPLOYMENT_CLUSTER ? unserved_slots(n) : 0;
	if (unserved == CLUSTER_SLOTS) {
		snprintf(error, size, "the cluster serves no slot yet");
		return -1;
	}
	if (unserved)
		fprintf(stderr, "forktail load: %u of %d slots have no server\n", unserved, CLUSTER_SLOTS);
	if (n->read_from == READ_NEAREST)
		measure_rtt(&t);
	return 0;
}

/* ---- while it runs ---- */

/* Whether keys are without a server now: then the topology is read at once. */
static bool in_trouble(const struct nodes *n)
{
	uint32_t count = n->kind == DEPLOYMENT_CLUSTER ? CLUSTER_SLOTS : 1;

	for (uint32_t i = 0; i < count; i++) {
		uint16_t owner = atomic_load_explicit(&n->owner[i], memory_order_relaxed);

		if (owner != NODE_NONE &&
		    atomic_load_explicit(&nodes_at(n, owner)->down, memory_order_relaxed))
			return true;
	}
	return false;
}

static void *watch(void *arg)
{
	struct topology *t = arg;
	struct nodes *n = t->nodes;
	struct pollfd fds[2] = {{.fd = t->stop_fd, .events = POLLIN}, {.fd = n->look_fd, .events = POLLIN}};
	char error[600];
	uint64_t count;

	pthread_setname_np(pthread_self(), "topology");
	for (;;) {
		bool trouble = in_trouble(n);

		if (poll(fds, trouble ? 1 : 2, trouble ? TROUBLE_MS : REST_MS) > 0 && fds[0].revents)
			return NULL;
		/* Several requests to read the topology are answered by one read, and reads are limited in
		 * frequency. */
		if (!trouble && fds[1].revents && poll(fds, 1, TROUBLE_MS) > 0)
			return NULL;
		(void)!read(n->look_fd, &count, sizeof(count));
		atomic_store(&n->look_wanted, false);
		ask_one(t, error, sizeof(error));
		if (n->read_from == READ_NEAREST)
			measure_rtt(t);
	}
}

int topology_start(struct topology **out, struct nodes *n, struct ft_writer *log)
{
	struct topology *t;
	char error[400];
	int rc;

	*out = NULL;
	if (n->kind == DEPLOYMENT_RING)
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->nodes = n;
	t->log = log;
	t->patience_ns = PATIENCE_NS;
	t->stop_fd = eventfd(0, EFD_CLOEXEC);
	rc = t->stop_fd < 0 ? -errno : prepare_sentinels(t, error, sizeof(error)) ? -ENOMEM : 0;
	if (rc == 0)
		rc = -pthread_create(&t->handle, NULL, watch, t);
	if (rc) {
		if (t->stop_fd >= 0)
			close(t->stop_fd);
		release(t);
		free(t);
		return rc;
	}
	*out = t;
	return 0;
}

void topology_stop(struct topology *t)
{
	uint64_t one = 1;

	if (!t)
		return;
	if (write(t->stop_fd, &one, sizeof(one)) < 0) {
		/* Writing one to an eventfd fails only if 2^64 - 2 are unread. */
	}
	pthread_join(t->handle, NULL);
	close(t->stop_fd);
	release(t);
	free(t);
}

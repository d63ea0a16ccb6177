/* SPDX-License-Identifier: MIT */
/* The servers of a deployment and who answers for which keys: a Redis Cluster, a primary with its replicas
 * that Sentinel watches over, or several independent servers with keys hashed over them.
 *
 * One table for all threads. Load threads read it for every request and set what a redirect told them; the
 * topology's thread (topology.c) sets what it learned by asking. All of that are single words, read and
 * written without a lock: whoever reads an old one is sent away by the server and comes back with the new
 * one. Nodes are never taken out, so that their numbers and connections stay valid for the whole run.
 *
 * `version` goes up with each change, so that a thread with requests waiting for a node knows to look again.
 */
#ifndef FORKTAIL_LOADGEN_NODES_H
#define FORKTAIL_LOADGEN_NODES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ketama.h"
#include "loadgen/net/socket.h"
#include "loadgen/server/connect.h"
#include "slots.h"

enum { NODES_MAX = 512, NODE_REPLICAS_MAX = 15, NODE_NONE = 0xffff };

struct node {
	char name[300]; /* "127.0.0.1:7001", "unix:/run/redis.sock" */
	struct server server;
	struct endpoint endpoint;
	_Atomic uint16_t replicas[NODE_REPLICAS_MAX];
	atomic_uint replica_count;
	atomic_bool down;	     /* connections broke or were refused, and none got through since */
	atomic_uint_fast64_t rtt_ns; /* of a PING, when last asked; 0: not known */
};

struct nodes {
	enum deployment kind;
	enum read_from read_from;
	const struct options *options;
	struct node *_Atomic list[NODES_MAX];
	atomic_uint count;
	/* By slot of a cluster; [0] of a primary with replicas; by server of a ring. NODE_NONE: nobody. */
	_Atomic uint16_t owner[CLUSTER_SLOTS];
	atomic_uint version;
	struct ketama ketama;
	int look_fd; /* eventfd: somebody wants the topology read again */
	atomic_bool look_wanted;
	pthread_mutex_t lock; /* of adding */
};

/* -ENOMEM or another negative errno. */
int nodes_init(struct nodes *n, const struct options *o);
void nodes_free(struct nodes *n);

/* The number of the node with this address, added if it is new. NODE_NONE: the table is full, memory is
 * short, or the name has no address; `error` says which. */
uint16_t nodes_add(struct nodes *n, const struct server_address *a, char *error, size_t size);

static inline struct node *nodes_at(const struct nodes *n, uint16_t number)
{
	return atomic_load_explicit(&n->list[number], memory_order_acquire);
}

/* Says that something changed. */
void nodes_note_change(struct nodes *n);
/* Asks for the topology to be read again, soon. */
void nodes_look(struct nodes *n);
/* Notes that a node can be reached, or can't. */
void nodes_set_reachable(struct nodes *n, uint16_t number, bool reached);

/* The node for a request of `slot`: the owner, or for one that reads and may (--read-from), one of its
 * replicas; `turn` spreads such requests evenly. NODE_NONE: nobody serves it now. */
uint16_t nodes_choose(const struct nodes *n, uint32_t slot, bool reads, uint32_t turn);
/* A node for a command without a key. */
uint16_t nodes_any(const struct nodes *n, uint32_t turn);

/* Whether requests may go to this node as things are. */
bool nodes_serves(const struct nodes *n, uint16_t number);
uint32_t nodes_serving(const struct nodes *n);

/* Of "3999 127.0.0.1:6381", what follows MOVED or ASK: the slot and the node, added if it is new. An empty
 * host is that of `from`, the node that said it. False: it is no such text. */
bool nodes_redirect(struct nodes *n, const char *text, uint16_t from, uint32_t *slot, uint16_t *node);

#endif

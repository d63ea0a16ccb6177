/* SPDX-License-Identifier: MIT */
/* The servers of a deployment and which keys each serves: a Redis Cluster, a primary with replicas monitored
 * by Sentinel, or several independent servers with hashed keys. All threads share one table. Load threads
 * read it for every request and store what a redirect reported; the topology's thread (topology.c) stores
 * what it learned by asking. All of it is single words without a lock: after reading an old word, a thread is
 * redirected by the server and stores the new one. Nodes are never removed, so their numbers and connections
 * stay valid for the whole run. `version` increases with each change, so that a thread with requests waiting
 * for a node knows when to check again. */
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
	atomic_bool down;	     /* connections broke or were refused, and none has succeeded since */
	atomic_uint_fast64_t rtt_ns; /* round-trip time of the last PING; 0: unknown */
};

struct nodes {
	enum deployment kind;
	enum read_from read_from;
	const struct options *options;
	struct node *_Atomic list[NODES_MAX];
	atomic_uint count;
	/* By slot for a cluster; [0] for a primary with replicas; by server for a ring. NODE_NONE: no
	 * server. */
	_Atomic uint16_t owner[CLUSTER_SLOTS];
	atomic_uint version;
	struct ketama ketama;
	int look_fd; /* eventfd: a thread wants the topology read again */
	atomic_bool look_wanted;
	pthread_mutex_t lock; /* for adding */
};

/* Returns -ENOMEM or another negative errno. */
int nodes_init(struct nodes *n, const struct options *o);
void nodes_free(struct nodes *n);

/* Returns the number of the node with this address, added if it is new. NODE_NONE: the table is full, memory
 * is short, or the name does not resolve; `error` says which. */
uint16_t nodes_add(struct nodes *n, const struct server_address *a, char *error, size_t size);

static inline struct node *nodes_at(const struct nodes *n, uint16_t number)
{
	return atomic_load_explicit(&n->list[number], memory_order_acquire);
}

/* Signals that something changed. */
void nodes_note_change(struct nodes *n);
/* Requests that the topology is read again soon. */
void nodes_look(struct nodes *n);
/* Records whether a node can be reached. */
void nodes_set_reachable(struct nodes *n, uint16_t number, bool reached);

/* Returns the node for a request of `slot`: the owner, or for a read that may go there (--read-from), one of
 * its replicas. `turn` distributes such requests evenly. NODE_NONE: no node serves it now. */
uint16_t nodes_choose(const struct nodes *n, uint32_t slot, bool reads, uint32_t turn);
/* A node for a command without a key. */
uint16_t nodes_any(const struct nodes *n, uint32_t turn);

/* Whether requests may currently go to this node. */
bool nodes_serves(const struct nodes *n, uint16_t number);
uint32_t nodes_serving(const struct nodes *n);

/* Parses "3999 127.0.0.1:6381", which follows MOVED or ASK: the slot and the node, added if it is new. An
 * empty host means the host of `from`, the node that replied. False: the text has another form. */
bool nodes_redirect(struct nodes *n, const char *text, uint16_t from, uint32_t *slot, uint16_t *node);

#endif

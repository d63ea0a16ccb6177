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
#include <stddef.h>
#include <stdint.h>

#include "loadgen/cluster.h"
#include "loadgen/net.h"
#include "loadgen/options.h"
#include "loadgen/server.h"
#include "loadgen/workload.h"
#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

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
 * its replicas. `rotation` distributes such requests evenly. NODE_NONE: no node serves it now. */
uint16_t nodes_choose(const struct nodes *n, uint32_t slot, bool reads, uint32_t rotation);
/* A node for a command without a key. */
uint16_t nodes_any(const struct nodes *n, uint32_t rotation);

/* Whether requests may currently go to this node. */
bool nodes_serves(const struct nodes *n, uint16_t number);
uint32_t nodes_serving(const struct nodes *n);

/* Parses "3999 127.0.0.1:6381", which follows MOVED or ASK: the slot and the node, added if it is new. An
 * empty host means the host of `from`, the node that replied. False: the text has another form. */
bool nodes_redirect(struct nodes *n, const char *text, uint16_t from, uint32_t *slot, uint16_t *node);

/* Which slot a request belongs to: found from its command's key before it is formatted, because the slot
 * determines the connection. The key must follow from the request's key number alone: text, __key__,
 * __key_number__ and __tag__. */

struct link;
struct nodes;

/* Finds the key of each command of the workload, and which commands only read, by asking a Redis server
 * (COMMAND INFO, COMMAND GETKEYS; `link`). Without a link (NULL: memcached, or a server that does not answer
 * this), the key is assumed to be the second word, and get, gets, gat and mg to read. `several`: keys choose
 * servers. Call it before workload_prepare: it may turn an __int__ in a key into __key_number__, so that the
 * key is known when its server is chosen. Returns 0, or -EINVAL and a sentence if a key is not known before
 * it is drawn. */
int route_prepare(struct workload *w, struct link *link, bool several, char *error, size_t size);

/* Whether the key in this word follows from the request's key number. A random number in it is replaced by
 * the key number. */
bool route_settle_word(struct command *c, uint32_t word);

/* Writes the name of a request's key to `scratch`. False: out of memory. The step's route must be
 * ROUTE_KEY. */
bool route_name(const struct workload *w, const struct step *s, uint64_t key, struct bytes *scratch);

/* Returns the slot of a request for the deployment `n`. ROUTE_ANYWHERE: it has no key. */
#define ROUTE_ANYWHERE UINT32_MAX
uint32_t route_slot(const struct nodes *n, const struct workload *w, const struct step *s, uint64_t key,
		    struct bytes *scratch);

/* Servers behind a proxy (--behind): which server a request's key belongs to, for the log. The proxy
 * distributes keys in twemproxy's default way, so the same ring gives the answer (cluster.h). Only requests
 * of one command with one key have a known server; for others the log says that it is unknown. */

/* The name of server `i` in the proxy's ring: the given name, otherwise derived from its address. */
void proxy_ring_name(const struct options *o, uint32_t i, char *out, size_t size);

/* Builds the ring and finds the key in each command of the workload. Call it before workload_prepare: an
 * __int__ in a key becomes __key_number__, so that the key follows from the request's key number. Returns
 * -ENOMEM, or -EIO if this host's OpenSSL has no MD5, and a sentence. */
int proxy_ring_prepare(struct ketama *ring, const struct options *o, struct workload *w, char *error,
		       size_t size);

/* The value for the log: the server's number plus one, or 0 if unknown. */
uint8_t proxy_ring_server(const struct ketama *ring, const struct workload *w, unsigned operation,
			  uint64_t key, struct bytes *scratch);

/* Learns which server serves which keys: before the load, and repeatedly during it. A separate thread asks
 * with blocking calls and time-outs, so that load threads only read the table of nodes. It asks once per
 * second, and every 20 ms while something is wrong: a node that can't be reached, or a redirect. A failover
 * is noticed at most that much later. Cluster: CLUSTER SLOTS from any node that answers. Sentinel:
 * get-master-addr-by-name and the replicas from the first Sentinel that answers, confirmed by ROLE of the new
 * primary. A primary alone: its ROLE names the replicas. */

struct topology;

/* Fills the table from the servers in the options. Returns 0, or -1 and a sentence. A cluster that doesn't
 * serve all slots can be loaded, with a warning on stderr. */
int topology_learn(struct nodes *n, char *error, size_t size);

/* Keeps the table up to date. Changes are logged as notes of kind "topology" (NULL: no log). Does nothing for
 * independent servers. Returns a negative errno on failure. */
int topology_start(struct topology **out, struct nodes *n, struct ft_writer *log);
void topology_stop(struct topology *t);

#ifdef __cplusplus
}
#endif
#endif

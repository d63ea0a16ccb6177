/* SPDX-License-Identifier: MIT */
/* A thread's knowledge of several servers: which one has a key, which of its connections lead there, and when
 * it could not be reached. routed_requests.c decides what is sent where and when. */
#ifndef FORKTAIL_LOADGEN_ROUTING_H
#define FORKTAIL_LOADGEN_ROUTING_H

#include "loadgen/cluster/nodes.h"
#include "loadgen/cluster/outages.h"
#include "loadgen/engine/load_thread.h"

struct routing {
	struct nodes *nodes;
	struct group *of_node[NODES_MAX];
	struct bytes scratch;	    /* names of keys */
	struct pending_queue later; /* no node serves them now, or a server asked to retry later */
	struct connection *to_send, **last;
	uint32_t rotation; /* distributes requests that may go to several nodes */
	uint32_t version;  /* version of the topology at the last check */
	uint64_t again_ns; /* when postponed requests are sent again */
	bool ticking, flushing;
	struct outages outages;
};

/* Creates t->routing. -ENOMEM on failure. */
int routing_init(struct load_thread *t);
void routing_free(struct load_thread *t);

/* The next command of a request, and the slot of its key, or ROUTE_ANYWHERE. */
const struct step *routing_step(const struct load_thread *t, const struct pending_request *p);
uint32_t routing_slot(struct load_thread *t, const struct pending_request *p);

/* The node that counts a request that waited for no particular server: the owner of its key, or NULL. */
struct group *routing_blame(struct load_thread *t, const struct pending_request *p);
/* Counts a finished request for its server. */
void routing_count(struct load_thread *t, struct group *g, const struct pending_request *p, uint64_t now_ns,
		   unsigned status);
/* A connect() failed or the connection broke: the topology may have changed. */
void routing_trouble(struct connection *c, uint64_t now_ns);
/* The outages that the thread saw; only for a thread with several servers. */
const struct outages *routing_outages(const struct load_thread *t);

#endif

/* SPDX-License-Identifier: MIT */
/* What a thread knows of several servers: which of them has a key, which of its connections lead there, and
 * when it could not be reached. What is sent where, and when, is routed_loops.c's. */
#ifndef FORKTAIL_LOADGEN_ROUTING_H
#define FORKTAIL_LOADGEN_ROUTING_H

#include "loadgen/cluster/nodes.h"
#include "loadgen/cluster/outages.h"
#include "loadgen/engine/load_thread.h"

struct routing {
	struct nodes *nodes;
	struct group *of_node[NODES_MAX];
	struct bytes scratch;	    /* names of keys */
	struct pending_queue later; /* nobody serves them now, or a server asked for patience */
	struct connection *to_send, **last;
	uint32_t turn;	   /* spreads what may go to any of several nodes */
	uint32_t version;  /* of the topology when last looked at */
	uint64_t again_ns; /* when what was put off is sent again */
	bool ticking, flushing;
	struct outages outages;
};

/* Makes t->routing. -ENOMEM. */
int routing_init(struct load_thread *t);
void routing_free(struct load_thread *t);

/* The command that a request sends next, and the slot of its key, or ROUTE_ANYWHERE. */
const struct step *routing_step(const struct load_thread *t, const struct pending_request *p);
uint32_t routing_slot(struct load_thread *t, const struct pending_request *p);

/* Whose figures have a request that waited for no server in particular: the owner of its key, if there is
 * one, else NULL. */
struct group *routing_blame(struct load_thread *t, const struct pending_request *p);
/* Counts a request that ended by its server. */
void routing_count(struct load_thread *t, struct group *g, const struct pending_request *p, uint64_t now_ns,
		   unsigned status);
/* A connect() failed, or the connection broke: the topology may be another by now. */
void routing_trouble(struct connection *c, uint64_t now_ns);
/* What the thread saw of outages; it has several servers. */
const struct outages *routing_outages(const struct load_thread *t);

#endif

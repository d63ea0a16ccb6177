/* SPDX-License-Identifier: MIT */
/* Requests on several servers: each goes to the server of its key, follows redirects, and waits while no
 * server has the key. Each outstanding request ends exactly once: answered, failed with the connection on
 * which it was sent (it is unknown whether it was executed), or given up after --retry or at the end. A
 * request that was never written is routed again without counting as failed. Its due time and its first
 * sending time do not change. */
#ifndef FORKTAIL_LOADGEN_ROUTED_REQUESTS_H
#define FORKTAIL_LOADGEN_ROUTED_REQUESTS_H

#include "event_loop.h"
#include "loadgen/engine/connection_events.h"
#include "loadgen/engine/connection_list.h"
#include "loadgen/engine/lifecycle.h"
#include "loadgen/engine/load_thread.h"
#include "routing.h"

/* Puts an outstanding request on a connection to the current server of its key, or lets it wait. */
void routed_send(struct load_thread *t, const struct pending_request *p);
/* Writes requests that were put on connections. */
void routed_flush(struct load_thread *t);

/* Entries of load models. */
int routed_init(struct load_thread *t);
void routed_on_group(struct load_thread *t, struct group *g);
void routed_give_up(struct load_thread *t, uint64_t now_ns);
void routed_on_room(struct connection *c, uint64_t now_ns);
void routed_on_connect(struct connection *c);
void routed_on_loss(struct connection *c, uint32_t first, uint32_t in_flight, uint32_t unwritten,
		    unsigned status, uint64_t now_ns);
void routed_take_over(struct load_thread *t, uint64_t now_ns);
void routed_on_end(struct connection *c, const struct pending_request *p, uint64_t now_ns, unsigned status);
bool routed_redirect(struct connection *c, const struct pending_request *answered, uint64_t now_ns);
void routed_step(struct connection *c, const struct pending_request *p);

/* The entries that all models for several servers share. They reopen connections while only answers are
 * awaited, because it is time to reach another server. */
#define ROUTED                                                                                               \
	.init = routed_init, .run = event_loop_run, .on_group = routed_on_group, .give_up = routed_give_up,  \
	.on_readable = connection_readable, .on_writable = connection_writable,                              \
	.update_list = connection_list_update, .on_room = routed_on_room, .on_answers = routed_on_room,      \
	.on_backlog = connection_keep_backlog, .on_connect = routed_on_connect,                              \
	.on_refusal = routing_trouble, .on_loss = routed_on_loss, .take_over = routed_take_over,             \
	.reopens_in_drain = true, .on_end = routed_on_end, .redirect = routed_redirect, .step = routed_step

#endif

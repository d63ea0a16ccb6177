/* SPDX-License-Identifier: MIT */
/* The load models. engine.h explains what a model is. */
#ifndef FORKTAIL_LOADGEN_MODELS_LOAD_MODELS_H
#define FORKTAIL_LOADGEN_MODELS_LOAD_MODELS_H

#include "loadgen/engine.h"
#include "loadgen/models.h"

/* One server, with an event loop. */
extern const struct load_model closed_loop, open_loop, replay_send;
/* One server, without an event loop, like a plain client. */
extern const struct load_model blocking_closed_loop, blocking_open_loop;
/* Several servers. */
extern const struct load_model routed_closed_loop, routed_open_loop, routed_replay;

/* The event loop of all load models except loops.c: their `init` and `run`. */

/* Creates the loop and what it watches besides connections. Negative errno. */
int event_loop_init(struct load_thread *t);
/* Calls the model's pump, and handles events until the load is finished. */
void event_loop_run(struct load_thread *t);

/* Requests that fall due by the clock: waking up for the next one, and ending those that are never sent. */

/* Calls the model's pump at due_ns (PACING_NEVER: never). */
void due_arm(struct load_thread *t, uint64_t due_ns);
/* Whether requests will still fall due: `more` of open loops. */
bool due_more(struct load_thread *t, uint64_t now_ns);
/* Ends the pacing, and counts what was due and never sent: by now, or until the planned end if all
 * connections are lost. */
void due_fail_unsent(struct load_thread *t, uint64_t now_ns);

/* Time-based control of a thread's connections: the time-out of requests, and a profile that lets more or
 * fewer connections send. */

/* Starts these timers, as far as the plan needs them. */
void connection_timers_start(struct load_thread *t);

/* Requests on several servers: each goes to the server of its key, follows redirects, and waits while no
 * server has the key. Each outstanding request ends exactly once: answered, failed with the connection on
 * which it was sent (it is unknown whether it was executed), or given up after --retry or at the end. A
 * request that was never written is routed again without counting as failed. Its due time and its first
 * sending time do not change. */

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

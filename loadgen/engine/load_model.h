/* SPDX-License-Identifier: MIT */
/* The load model: decides which request is sent when, and on which connection.
 *
 * A thread has one model for its whole life, chosen once (thread_lifecycle.c). Shared code calls the model
 * through these functions, and the model calls shared code directly, so that no file calls back to a file
 * that calls it. The models:
 *
 *   closed_loop.c     a connection keeps up to `pipeline` requests outstanding, sent `batch` at a time
 *   open_loop.c       a request that falls due goes to the connection that has been idle longest
 *   replay_send.c     a recording: each connection follows the chain of its own records
 *   routed_loops.c    the first two over several servers: a request goes to the server of its key
 *   routed_replay.c   a recording on several servers
 *   blocking_loops.c  either of the first two without an event loop: write, then read, as a plain client does
 *
 * The table is also used on the hot path, where callgrind showed no cost: a load thread took 1,231
 * instructions for a GET in a closed loop at pipeline 1 with the table, and 1,235 with inlined branches
 * instead. */
#ifndef FORKTAIL_LOADGEN_LOAD_MODEL_H
#define FORKTAIL_LOADGEN_LOAD_MODEL_H

#include <event2/util.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct load_thread;
struct connection;
struct group;
struct pending_request;

/* An entry may be NULL (nothing to do) where its comment says so. */
struct load_model {
	/* Allocates what it needs of a thread. Negative errno. */
	int (*init)(struct load_thread *t);
	/* Runs the thread's load from start to end. */
	void (*run)(struct load_thread *t);
	/* Releases what init or later calls created, even if incomplete. May be NULL. */
	void (*free)(struct load_thread *t);
	/* The thread has connections to an additional server. May be NULL. */
	void (*on_group)(struct load_thread *t, struct group *g);

	/* Takes requests that are due or for which there is space, and sends them. */
	void (*pump)(struct load_thread *t, uint64_t now_ns);
	/* Whether more requests will be taken. */
	bool (*more)(struct load_thread *t, uint64_t now_ns);
	/* Nothing more is sent: ends requests that were due by now, or fall due later (finish.h). May be
	 * NULL. */
	void (*fail_unsent)(struct load_thread *t, uint64_t now_ns);
	/* Ends requests that wait without a connection. May be NULL. */
	void (*give_up)(struct load_thread *t, uint64_t now_ns);

	/* Handlers of an open connection's events (connection_events.h); NULL without an event loop. */
	void (*on_readable)(evutil_socket_t fd, short what, void *arg);
	void (*on_writable)(evutil_socket_t fd, short what, void *arg);
	/* A connection may have gained or lost space: moves it to the right list. May be NULL. */
	void (*update_list)(struct connection *c);
	/* A connection was opened, or the kernel has accepted all of its bytes: it can send again. */
	void (*on_room)(struct connection *c, uint64_t now_ns);
	/* Answers were received on a connection: sends requests that were put on it meanwhile, and requests
	 * that now have space. */
	void (*on_answers)(struct connection *c, uint64_t now_ns);
	/* The kernel did not accept these bytes of a batch. */
	void (*on_backlog)(struct connection *c, const char *bytes, size_t length);

	/* A server was reached. May be NULL. */
	void (*on_connect)(struct connection *c);
	/* A connect() failed. May be NULL. */
	void (*on_refusal)(struct connection *c, uint64_t now_ns);
	/* A connection broke with requests in flight: from slot `first` of its ring; the last `unwritten`
	 * were not passed to the kernel. */
	void (*on_loss)(struct connection *c, uint32_t first, uint32_t in_flight, uint32_t unwritten,
			unsigned status, uint64_t now_ns);
	/* Called after that, so that other connections can take over. May be NULL. */
	void (*take_over)(struct load_thread *t, uint64_t now_ns);
	/* Whether connections are reopened while only answers are awaited. */
	bool reopens_in_drain;

	/* A request ended with its answer. May be NULL. */
	void (*on_end)(struct connection *c, const struct pending_request *p, uint64_t now_ns,
		       unsigned status);
	/* The answer to the oldest request is an error. Returns whether the request is sent elsewhere or
	 * later. May be NULL. */
	bool (*redirect)(struct connection *c, const struct pending_request *p, uint64_t now_ns);
	/* Sends the next step of an operation; the previous one was removed from the ring. */
	void (*step)(struct connection *c, const struct pending_request *p);
	/* A command of the model (an `internal` operation) was answered, with an FT_STATUS_*. NULL: it has
	 * none. */
	void (*on_own_answer)(struct connection *c, unsigned status);
};

#endif

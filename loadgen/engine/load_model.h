/* SPDX-License-Identifier: MIT */
/* The load model: what decides which request goes out when, and on which connection.
 *
 * A thread has one for all its life, chosen once (thread_lifecycle.c), and what every model shares asks it by
 * these functions: it calls up to the model, and the model calls down to it, so no file calls back to one
 * that calls it. The models:
 *
 *   closed_loop.c     a connection keeps up to `pipeline` requests on their way, sent `batch` at a time
 *   open_loop.c       a request that falls due goes to the connection that has been idle longest
 *   routed_loops.c    either of these over several servers: a request goes to the one that has its key
 *   replay_send.c     a recording: each connection follows the chain of its own records
 *   blocking_loops.c  either of the first two without an event loop: write, then read, as a plain client does
 *
 * The table is asked on the hot path, too: by callgrind it costs nothing there. With the branches that it
 * replaced, inlined, a load thread took 1,235 instructions for a GET in a closed loop at pipeline 1 and 525
 * at 16; with the table it takes 1,231 and 524.
 */
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

/* An entry may be NULL, for nothing to do, where it says so. */
struct load_model {
	/* What it needs of a thread; negative errno. */
	int (*init)(struct load_thread *t);
	/* Does the thread's load from its start to its end. */
	void (*run)(struct load_thread *t);
	/* What init or later calls made, as far as they came. May be NULL. */
	void (*free)(struct load_thread *t);
	/* The thread has connections to one more server. May be NULL. */
	void (*on_group)(struct load_thread *t, struct group *g);

	/* Takes up the requests that are due or that there is room for, and sends them. */
	void (*pump)(struct load_thread *t, uint64_t now_ns);
	/* Whether requests are still to be taken up. */
	bool (*more)(struct load_thread *t, uint64_t now_ns);
	/* Nothing more is sent: ends requests that were due up to now. May be NULL. */
	void (*fail_unsent)(struct load_thread *t, uint64_t now_ns);
	/* Ends requests that wait without a connection. May be NULL. */
	void (*give_up)(struct load_thread *t, uint64_t now_ns);

	/* Handlers of an open connection's events (connection_events.h); NULL without an event loop. */
	void (*on_readable)(evutil_socket_t fd, short what, void *arg);
	void (*on_writable)(evutil_socket_t fd, short what, void *arg);
	/* A connection may have begun or ceased to have room: has it on the list that it belongs to now. May
	 * be NULL. */
	void (*update_list)(struct connection *c);
	/* A connection was opened, or the kernel has taken all of its bytes: it can send again. */
	void (*on_room)(struct connection *c, uint64_t now_ns);
	/* Answers were taken off a connection: what was put on it meanwhile is sent, and so is what they made
	 * room for. */
	void (*on_answers)(struct connection *c, uint64_t now_ns);
	/* The kernel did not take these bytes of a batch. */
	void (*on_backlog)(struct connection *c, const char *bytes, size_t length);

	/* A server was reached. May be NULL. */
	void (*on_connect)(struct connection *c);
	/* A connect() failed. May be NULL. */
	void (*on_refusal)(struct connection *c, uint64_t now_ns);
	/* A connection broke, and this was in flight on it: from place `first` of its ring, the last
	 * `unwritten` not handed to the kernel. */
	void (*on_loss)(struct connection *c, uint32_t first, uint32_t in_flight, uint32_t unwritten,
			unsigned status, uint64_t now_ns);
	/* After that, other connections may take over. May be NULL. */
	void (*take_over)(struct load_thread *t, uint64_t now_ns);
	/* Whether connections are opened again while answers are only awaited. */
	bool reopens_in_drain;

	/* A request ended with its answer. May be NULL. */
	void (*on_end)(struct connection *c, const struct pending_request *p, uint64_t now_ns,
		       unsigned status);
	/* The answer to the oldest request is an error. Whether that sends it elsewhere, or puts it off. May
	 * be NULL. */
	bool (*redirect)(struct connection *c, const struct pending_request *p, uint64_t now_ns);
	/* Has the next step of an operation sent; the one before was dropped from the ring. */
	void (*step)(struct connection *c, const struct pending_request *p);
	/* A command of its own (an `internal` operation) was answered, with an FT_STATUS_*. NULL: it has
	 * none. */
	void (*on_own_answer)(struct connection *c, unsigned status);
};

#endif

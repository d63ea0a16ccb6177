/* SPDX-License-Identifier: MIT */
/* A connection: what is in flight on it, where its answers stand, and the two events that move it on. */
#ifndef FORKTAIL_LOADGEN_CONNECTION_H
#define FORKTAIL_LOADGEN_CONNECTION_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "loadgen/protocol/reply.h"
#include "pending_queue.h"
#include "pending_request.h"

/* Of a log entry that never got as far as a connection. */
#define NO_CONNECTION UINT32_MAX

struct connection;
TAILQ_HEAD(connection_list, connection);

/* A connection's comings and goings; nothing of it is on the path of a request. */
struct lifetime {
	uint64_t begun_ns;	       /* when it was begun to be opened again */
	uint64_t opened_ns, closed_ns; /* closed_ns 0: open to the end */
	uint64_t inode;		       /* of its socket */
	uint32_t backoff_ms;	       /* before it is opened again; doubles with each failure */
	uint16_t local_port;
};

/* Members that each request touches are together, and those of an opening or a closing are last. */
struct connection {
	struct event readable;
	struct load_thread *thread;
	struct group *group;
	struct pending_request *pending; /* a ring of ring_size, the pipeline's depth */
	struct write_backlog *backlog;	 /* NULL: the kernel took all */
	struct reply_buffer *reply;	 /* NULL: nobody looks at replies beyond their end */
	struct tls_session *tls;	 /* NULL: plain */
	struct connection_list *list;	 /* the list it's on (connection_list.h); NULL: on none */
	TAILQ_ENTRY(connection) list_entry;
	struct connection *next_to_send;
	uint32_t ring_size, first, in_flight;
	uint32_t to_send; /* the last ones in flight that were not handed to the kernel yet */
	uint32_t id;
	uint32_t taken;	    /* requests since it was opened last */
	int fd;		    /* -1: closed */
	bool connecting;    /* in the kernel's hands, or amid the TLS handshake */
	bool waiting;	    /* a timer will come back to it */
	bool parked;	    /* a profile keeps it idle */
	bool arrival_times; /* the kernel says when answers came */
	union {
		struct {
			uint32_t asks; /* of those in flight, ASKINGs: requests of ours (routed_loops.c) */
			uint8_t greetings; /* answers to set-up commands still to come */
			bool batch_ends;   /* the next answer is to a batch's end (meta_answer.c) */
			bool meta;	   /* memcached's meta commands: answers say whose they are */
		};
		uint64_t odd; /* not 0: an answer may be none to the oldest request */
	};
	union reply_scanner scan;
	struct lifetime life;
};

/* A thread's connections to one server. Against a single server there is one group; with several, requests
 * have to go to a certain one of them, and wait with it while none of its connections has room
 * (routed_loops.c). */
struct group {
	struct connection_list idle, partial; /* those with room (connection_list.h) */
	struct connection *connections;
	struct pending_request *rings;
	uint32_t count;
	const struct endpoint *endpoint;
	uint16_t node;			  /* its number among struct nodes */
	struct pending_queue queue, asks; /* for room; those in `asks` behind an ASKING */
	uint64_t last_ok_ns;		  /* the last answer that was no error */
};

/* The place of the request that is `at` behind the oldest. */
static inline uint32_t ring_index(const struct connection *c, uint32_t at)
{
	uint32_t size = c->ring_size, i = c->first + at;

	return i < size ? i : i - size;
}

/* A place behind the requests in flight, for one to be sent with the next batch. */
static inline struct pending_request *ring_add(struct connection *c)
{
	struct pending_request *p = &c->pending[ring_index(c, c->in_flight)];

	c->in_flight++;
	c->to_send++;
	return p;
}

/* The oldest request is no more this connection's. */
static inline void ring_drop(struct connection *c)
{
	c->first = ring_index(c, 1);
	c->in_flight--;
}

#endif

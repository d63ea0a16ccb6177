/* SPDX-License-Identifier: MIT */
/* A connection: its requests in flight, the parser state of its answers, and the two events that drive it. */
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

/* For a log entry of a request that was never assigned to a connection. */
#define NO_CONNECTION UINT32_MAX

struct connection;
TAILQ_HEAD(connection_list, connection);

/* The opening and closing of a connection. None of it is used on the path of a request. */
struct lifetime {
	uint64_t begun_ns;	       /* when reopening started */
	uint64_t opened_ns, closed_ns; /* closed_ns 0: open until the end */
	uint64_t inode;		       /* of its socket */
	uint32_t backoff_ms;	       /* before it is reopened; doubles with each failure */
	uint16_t local_port;
};

/* Members that each request uses are next to each other. Members for opening and closing are last. */
struct connection {
	struct event readable;
	struct load_thread *thread;
	struct group *group;
	struct pending_request *pending; /* a ring of ring_size, the pipeline's depth */
	struct write_backlog *backlog;	 /* NULL: the kernel accepted everything */
	struct reply_buffer *reply;	 /* NULL: replies are only skipped to their end */
	struct tls_session *tls;	 /* NULL: no TLS */
	struct connection_list *list;	 /* the list it is on (connection_list.h); NULL: none */
	TAILQ_ENTRY(connection) list_entry;
	struct connection *next_to_send;
	uint32_t ring_size, first, in_flight;
	uint32_t to_send; /* the last ones in flight that were not passed to the kernel yet */
	uint32_t id;
	uint32_t taken;	    /* requests since it was last opened */
	int fd;		    /* -1: closed */
	bool connecting;    /* a connect() or TLS handshake is in progress */
	bool waiting;	    /* a timer will handle it */
	bool parked;	    /* a profile keeps it idle */
	bool arrival_times; /* the kernel reports when answers arrived */
	union {
		struct {
			uint32_t asks;	   /* ASKINGs among those in flight (routed_requests.c) */
			uint8_t greetings; /* outstanding answers to set-up commands */
			bool batch_ends;   /* the next answer is to a batch's end (meta_answer.c) */
			bool meta;	   /* memcached's meta commands: answers identify their request */
		};
		uint64_t irregular; /* not 0: an answer may not belong to the oldest request */
	};
	union reply_scanner scan;
	struct lifetime life;
};

/* A thread's connections to one server. With a single server there is one group. With several, each request
 * must go to a certain server and waits there while none of its connections has space (routed_requests.c). */
struct group {
	struct connection_list idle, partial; /* those with space (connection_list.h) */
	struct connection *connections;
	struct pending_request *rings;
	uint32_t count;
	const struct endpoint *endpoint;
	uint16_t node;			  /* its number in struct nodes */
	struct pending_queue queue, asks; /* waiting for space; those in `asks` after an ASKING */
	uint64_t last_ok_ns;		  /* the last answer without an error */
};

/* The slot of the request at position `at` after the oldest. */
static inline uint32_t ring_index(const struct connection *c, uint32_t at)
{
	uint32_t size = c->ring_size, i = c->first + at;

	return i < size ? i : i - size;
}

/* A slot after the requests in flight, for a request to be sent with the next batch. */
static inline struct pending_request *ring_add(struct connection *c)
{
	struct pending_request *p = &c->pending[ring_index(c, c->in_flight)];

	c->in_flight++;
	c->to_send++;
	return p;
}

/* Removes the oldest request from this connection. */
static inline void ring_drop(struct connection *c)
{
	c->first = ring_index(c, 1);
	c->in_flight--;
}

#endif

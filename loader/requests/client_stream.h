/* SPDX-License-Identifier: MIT */
/* Shared by the parts of the matcher: what is known of a connection. matcher.c follows its stream; answers.c
 * keeps the requests that were read and the writes since, until it is known which write answers which. */
#ifndef FORKTAIL_LOADER_CLIENT_STREAM_H
#define FORKTAIL_LOADER_CLIENT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/request_events.h"
#include "loader/requests/request_messages.h"
#include "loader/requests/scanner.h"

enum {
	MATCHER_TARGETS = 1024,
	WRITES_MAX = 256, /* of a group of requests, kept one by one */
};

enum sync {
	SYNC_LOST, /* the position in the stream of requests is unknown, until the connection is idle */
	SYNC_FOLLOWED,
	SYNC_EXCHANGES, /* the bytes are not readable (TLS): what is read until a write is one request */
};

/* Whether the server has more to write of the answers to what it read. */
enum backlog {
	BACKLOG_NONE,
	BACKLOG_POSSIBLE, /* a large write may not be the last one */
	BACKLOG_CERTAIN,  /* the socket's buffer is full */
};

struct pending {
	uint64_t arrival_ns, read_ns;
	uint64_t hash;
	uint32_t bytes, tid;
	uint8_t command;
	bool unarrived;
	bool left_out; /* it blocks, or is behind one that does: it only takes part in the matching */
};

struct answer_write {
	uint64_t t_ns, left_ns;
	uint32_t bytes;
	uint8_t begin[FT_ANSWER_BEGIN];
};

struct client_stream {
	uint32_t id, tgid;
	struct ft_request_connection opened;
	struct scanner scanner;
	uint8_t sync;
	bool announced;	 /* the recorder knows it */
	uint8_t backlog; /* enum backlog */
	bool asynchronous, proxy, begun;
	bool pushes;		/* what is written answers no request */
	bool pushed;		/* messages may be written after an answer */
	bool wrote;		/* since the last read */
	bool multi;		/* between MULTI and EXEC nothing blocks */
	uint32_t queued;	/* commands since MULTI */
	bool blocked;		/* a command that may wait for data is pending */
	bool overlaps;		/* the client has sent a request before it had the answer to another */
	bool unknown;		/* requests that are not known may be pending, too */
	bool large;		/* of the writes since all was answered, one was not the last of its answer */
	bool unproved;		/* nothing since it was found again was a known command */
	uint16_t sequence;	/* of the next event */
	uint32_t offset;	/* of the stream, scanned so far */
	uint32_t begin;		/* where the request that is being scanned began */
	uint64_t last_write_ns; /* the last write of all */
	uint64_t now_ns;	/* of the read that is being scanned */
	uint32_t tid;
	struct ft_request_arrival *arrivals;
	size_t arrival_count, arrivals_room;
	uint64_t begin_arrival_ns; /* of the request that is being scanned; 0: unknown */
	struct pending *pending;
	size_t pending_count, pending_room;
	struct answer_write *writes;
	size_t writes_room;
	uint32_t write_count;					/* may be more than are kept */
	struct answer_write last;				/* the last one */
	uint64_t answer_bytes;					/* of all */
	struct client_stream *next_answered, **answered_before; /* in the list of those with writes */
};

struct matcher {
	request_handler handler;
	void *context;
	struct client_stream *table[FT_REQUESTS_SLOTS_MAX];
	struct client_stream *answered; /* connections with writes that are not complete */
	struct request_target targets[MATCHER_TARGETS];
	size_t target_count;
	size_t pending_room; /* of all connections */
	uint8_t ping, unsubscribe, exec;
	uint64_t counts[REQUEST_COUNTS];
	struct proxied *proxied; /* once there is a proxy among the targets */
};

/* A request that ended at the offset was read. */
void client_stream_add(struct matcher *m, struct client_stream *c, uint8_t command, uint64_t hash,
		       uint32_t end);
/* There are writes since: the connection is in the matcher's list. */
void client_stream_written(struct matcher *m, struct client_stream *c);
/* All that is pending was answered by the writes since. */
void client_stream_complete(struct matcher *m, struct client_stream *c);
/* From here on the position in the stream is unknown. What is pending is known. */
void client_stream_leave(struct matcher *m, struct client_stream *c);
/* Likewise, and which write answers what is pending is not known either. */
void client_stream_lose(struct matcher *m, struct client_stream *c);
/* Events are missing from here on. An answer that was one write is complete; of several requests or large
 * answers, later writes may be among those events. */
void client_stream_lose_after_gap(struct matcher *m, struct client_stream *c);
/* Returns the memory of a connection with nothing pending. */
void client_stream_release(struct matcher *m, struct client_stream *c);
void client_stream_free(struct matcher *m, struct client_stream *c);

#endif

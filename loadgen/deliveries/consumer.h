/* SPDX-License-Identifier: MIT */
/* A consumer: its commands and answers (consumer.c), its connection (consumer_connection.c) and how its
 * messages are counted (messages.c). struct deliveries is shared by all consumers; their thread is in
 * consumer_thread.c. */
#ifndef FORKTAIL_LOADGEN_CONSUMER_H
#define FORKTAIL_LOADGEN_CONSUMER_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <hiredis/hiredis.h>
#include <pthread.h>

#include "deliveries.h"

/* Which of the last SEEN_NUMBERS message numbers were received already. */
enum { SEEN_NUMBERS = 1 << 16 };
struct seen {
	uint64_t highest; /* number + 1; 0: none yet */
	uint64_t bits[SEEN_NUMBERS / 64];
};

enum consumer_state { CONSUMER_CLOSED, CONSUMER_CONNECTING, CONSUMER_PREPARING, CONSUMER_READY };

struct consumer {
	struct deliveries *deliveries;
	enum consumer_state state;
	int fd;
	uint32_t number, id;
	uint32_t greetings; /* answers outstanding to AUTH and other greeting commands */
	uint32_t awaited;   /* answers outstanding to commands that prepare the consumer */
	redisReader *reader;
	struct bytes out;
	size_t written;
	struct event readable, writable;
	struct event retry; /* closed: when to reconnect */
	uint32_t backoff_ms;
	uint64_t opened_ns, closed_ns;
	uint64_t inode; /* of its socket */
	uint16_t local_port;
	char last_id[48];  /* of a stream's entries */
	struct seen *seen; /* pub/sub, streams: its own; otherwise shared by all consumers */
};

struct deliveries {
	struct deliveries_plan plan;
	struct consumer *consumers;
	struct seen *seen;
	uint32_t ready;
	struct event_base *base;
	struct event wake, tick;
	int wake_fd;
	char *buffer; /* READ_AT_ONCE bytes */
	pthread_t handle;
	bool started;
	atomic_uint_fast64_t received; /* counted in the figures */
	struct log_lane lane;
	pthread_mutex_t lock; /* for the fields below */
	uint64_t measure_ns;
	struct stats *stats;
	struct delivery_counts how;
};

enum { READ_AT_ONCE = 64 << 10 };

/* ---- messages.c ---- */

/* A message arrived. The lock is held. */
void take_message(struct consumer *c, const redisReply *payload, uint64_t end_ns);

/* ---- consumer.c ---- */

/* Queues the commands that prepare the consumer, after `greeting_bytes` of greetings that are queued
 * already. */
bool consumer_prepare(struct consumer *c);
/* Queues the command that waits for the next message (lists and streams). */
bool consumer_ask(struct consumer *c);
/* A complete reply arrived. Returns NULL, or why the connection is unusable. */
const char *consumer_take_reply(struct consumer *c, const redisReply *r, uint64_t end_ns);

/* ---- consumer_connection.c ---- */

/* Adds an open descriptor to this event loop. False: out of memory. */
bool consumer_admit(struct consumer *c);
/* Writes queued bytes until the socket is full. */
void consumer_flush(struct consumer *c);
/* Closes its connection permanently. */
void consumer_close(struct consumer *c);
/* Logs its connection. */
void consumer_log(const struct consumer *c, bool ended);

#endif

/* SPDX-License-Identifier: MIT */
/* What the two files of consumers share: deliveries.c has the thread and the counting, consumer.c what one
 * connection says and hears. */
#ifndef FORKTAIL_LOADGEN_DELIVERIES_PARTS_H
#define FORKTAIL_LOADGEN_DELIVERIES_PARTS_H

#include <hiredis/hiredis.h>
#include <pthread.h>

#include "deliveries.h"

/* Which of the last SEEN_NUMBERS message numbers came already. */
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
	uint32_t greetings; /* answers still to come to AUTH and the like */
	uint32_t awaited;   /* and to what makes it ready */
	redisReader *reader;
	struct bytes out;
	size_t written;
	uint64_t retry_ns; /* closed: when to open it again, PACING_NEVER: not */
	uint32_t backoff_ms;
	uint64_t opened_ns, closed_ns;
	uint16_t local_port;
	char last_id[48];  /* of a stream's entries */
	struct seen *seen; /* pub/sub, streams: its own; else all consumers' */
};

struct deliveries {
	struct deliveries_plan plan;
	struct consumer *consumers;
	struct seen *seen;
	uint32_t ready;
	int epoll_fd, wake_fd;
	pthread_t handle;
	bool started;
	atomic_bool ending;
	atomic_uint_fast64_t received; /* in the figures */
	struct log_lane lane;
	pthread_mutex_t lock; /* of what follows */
	uint64_t measure_ns;
	struct stats *stats;
	struct delivered how;
};

/* Queues what makes the consumer ready, behind `greeting_bytes` of greetings already queued or none. */
bool consumer_prepare(struct consumer *c);
/* Queues the command that waits for the next message (lists and streams). */
bool consumer_ask(struct consumer *c);
/* A whole reply came. NULL, or why the connection is no good any more. */
const char *consumer_heard(struct consumer *c, const redisReply *r, uint64_t end_ns);
/* A message, for deliveries.c. */
void deliveries_take_message(struct consumer *c, const redisReply *payload, uint64_t end_ns);

#endif

/* SPDX-License-Identifier: MIT */
/* A load thread: its connections, its event loop, its part of the load. It shares nothing with other load
 * threads but the read-only plan; what it counts it hands over once a second.
 *
 * Closed loop: a connection sends a batch of `pipeline` requests, awaits all answers, sends the next.
 * Open loop: when a request falls due it goes to the connection that has been idle longest, else to one
 * with room in its pipeline; while none has room it waits, and its latency counts from when it was due.
 */
#ifndef FORKTAIL_LOADGEN_THREAD_H
#define FORKTAIL_LOADGEN_THREAD_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "log.h"
#include "pacing.h"
#include "resp.h"
#include "stats.h"
#include "workload.h"

/* Of a log entry that never got as far as a connection. */
#define NO_CONNECTION UINT32_MAX

/* A request on its way. */
struct pending {
	uint64_t intended_ns, start_ns;
	uint64_t key : 56, operation : 8;
};

enum room { ROOM_NONE, ROOM_IDLE, ROOM_PARTIAL };

/* What the kernel did not take at once; rare, so it's apart from the connection. */
struct unsent {
	struct event writable;
	size_t done, length;
	char bytes[];
};

struct connection {
	struct event readable;
	struct load_thread *thread;
	struct pending *pending; /* a ring of ring_size, the pipeline's depth */
	struct unsent *unsent;
	TAILQ_ENTRY(connection) with_room;
	struct connection *next_to_send;
	uint32_t ring_size, first, in_flight;
	uint32_t to_send; /* the last ones in flight that were not handed to the kernel yet */
	uint32_t id;
	int fd;	      /* -1: closed */
	uint8_t room; /* the list it's on */
	uint16_t local_port;
	uint64_t opened_ns, closed_ns; /* closed_ns 0: open to the end */
	struct resp_scanner scan;
};

TAILQ_HEAD(connection_list, connection);

/* What all threads are to do; read-only while they run, but for the two flags. */
struct load_plan {
	struct workload workload;
	uint64_t start_ns, end_ns; /* end_ns: PACING_NEVER without a duration */
	uint64_t drain_ns;
	uint32_t pipeline;
	bool open_loop;
	atomic_bool stop;    /* send nothing more, await answers for a second at most */
	atomic_bool abandon; /* await nothing more */
	int done_fd;	     /* eventfd: a thread has ended */
};

struct load_thread {
	struct load_plan *plan;
	struct event_base *base;
	struct connection *connections;
	struct pending *rings;
	uint32_t connection_count, alive;
	uint32_t lost; /* connections that broke; not those closed because time was up */
	uint32_t index;
	uint64_t left;	    /* requests still to be taken up; closed loop */
	uint64_t in_flight; /* over all connections */
	uint64_t give_up_ns;
	bool stopping, finished;
	const char *broken; /* why the last lost connection was lost */

	struct chooser chooser;
	struct request_buffer requests;
	char *read_buffer;
	struct connection_list idle, partial;
	struct pacing pacing;
	uint64_t armed_ns; /* what due_fd is set to */
	int due_fd, tick_fd, wake_fd;
	struct event due_event, tick_event, wake_event;

	struct log_lane lane;
	struct stats *stats;  /* the second that runs */
	uint64_t second_ns;   /* when it began */
	pthread_mutex_t lock; /* of the two below */
	struct stats *ready, *spare;

	pthread_t handle;
	atomic_int tid;	 /* 0 until it runs */
	uint64_t cpu_ns; /* once it has ended */
};

enum { READ_BYTES = 64 << 10 };

/* Takes over `fds` (non-blocking, count > 0), numbered from first_id. Negative errno. */
int load_thread_init(struct load_thread *t, struct load_plan *plan, uint32_t index, const int *fds,
		     uint32_t count, uint32_t first_id, struct request_log *log);
/* `requests` and `pacing` are this thread's part; plan->start_ns must be set. */
int load_thread_start(struct load_thread *t);
/* Tells it that plan->stop or plan->abandon was set. */
void load_thread_wake(struct load_thread *t);
/* The last whole second's counts, or NULL; given back (emptied) with load_thread_return. */
struct stats *load_thread_take(struct load_thread *t);
void load_thread_return(struct load_thread *t, struct stats *s);
void load_thread_join(struct load_thread *t);
void load_thread_free(struct load_thread *t);

/* ---- connection.c, the hot path, for thread.c ---- */

int connection_open(struct connection *c, struct load_thread *t, int fd, uint32_t id, struct pending *ring);
/* Takes up to a pipeline of requests, if the thread has any left, and sends them. Closed loop. */
void connection_refill(struct connection *c, uint64_t now_ns);
/* Hands out requests that are due to connections with room, and sets the timer for the next. Open loop. */
void open_loop_pump(struct load_thread *t, uint64_t now_ns);
/* Fails what is in flight with `status` and closes. */
void connection_fail(struct connection *c, unsigned status, const char *why);
/* Counts requests due up to now and never sent. */
void fail_unsent(struct load_thread *t, uint64_t now_ns);
/* Ends the loop when nothing is on its way and nothing more will be sent. */
void check_finished(struct load_thread *t, uint64_t now_ns);

#endif

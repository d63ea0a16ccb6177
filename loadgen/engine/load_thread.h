/* SPDX-License-Identifier: MIT */
/* A load thread: its connections, its event loop, its part of the load. It shares only the plan with other
 * load threads, read-only except for how the run ends (load_plan.h). It hands over its counters once per
 * second. Its model decides which request is sent when (load_model.h). */
#ifndef FORKTAIL_LOADGEN_LOAD_THREAD_H
#define FORKTAIL_LOADGEN_LOAD_THREAD_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "connection.h"
#include "load_model.h"
#include "load_plan.h"
#include "loadgen/net/arrival.h"
#include "loadgen/results/log.h"
#include "loadgen/results/stats.h"
#include "loadgen/workload/pacing.h"
#include "loadgen/workload/workload.h"
#include "timers.h"

/* The first wrong byte that --verify found. */
struct wrong_byte {
	bool found;
	uint64_t key;
	int64_t offset;
};

/* What failed, for a sentence at the end. */
struct trouble {
	uint32_t lost;	 /* connections that broke; not those closed because time was up */
	const char *why; /* why the last one was lost */
	char text[448];	 /* the memory of that text */
	struct wrong_byte wrong;
};

/* What the event loop watches besides connections (event_loop.c). */
struct alarms {
	struct timers timers;
	uint64_t due_ns; /* the time set in due_fd; for a thread that never sleeps, when it has to act */
	int due_fd, tick_fd, wake_fd;
	struct event due, tick, wake, timer;
};

/* Passes counters to the main thread (hand_over.c). */
struct hand_over {
	uint64_t second_ns;   /* when the current second began */
	pthread_mutex_t lock; /* of the two below */
	struct stats *ready, *spare;
};

/* When the answer that is being read had arrived, if the kernel is asked. */
struct arriving {
	struct arrival_clock clock;
	uint64_t stamp_ns; /* as reported by the kernel; 0: none */
	uint64_t at_ns;	   /* CLOCK_MONOTONIC; 0: nothing is being read, or unknown */
};

struct load_thread {
	struct load_plan *plan;
	const struct load_model *model;
	struct event_base *base; /* NULL: no event loop */
	struct group **groups;
	uint32_t group_count;
	uint32_t connection_count;    /* of each group */
	struct routing *routing;      /* routing.h; NULL: one server, one group */
	struct replay_thread *replay; /* replay_send.c's; NULL: no recording is replayed */

	uint64_t left;	    /* requests still to be taken; closed loop */
	uint64_t in_flight; /* over all connections */
	uint64_t give_up_ns;
	uint32_t alive; /* connections that send or will be reopened */
	bool stopping, finished;
	bool counting; /* warm-up is over */

	struct chooser chooser;
	struct request_buffer requests;
	struct bytes key_name; /* scratch */
	char *read_buffer;     /* of READ_BYTES */
	struct arriving arriving;
	struct pacing pacing;
	struct log_lane lane;
	struct stats *stats; /* the current second */

	struct alarms alarms;
	struct hand_over hand_over;
	struct trouble trouble;

	uint32_t index;
	int cpu; /* to run on; -1: any */
	pthread_t handle;
	atomic_int tid;	   /* 0 before it runs */
	atomic_uint ended; /* 1 while or after it runs */
	uint64_t cpu_ns;   /* after it has ended */
};

enum { READ_BYTES = 64 << 10 };

/* Over all servers. */
static inline uint32_t thread_connections(const struct load_thread *t)
{
	return t->group_count * t->connection_count;
}

/* Connection i of all connections of a thread, i < thread_connections(t). */
static inline struct connection *thread_connection(const struct load_thread *t, uint32_t i)
{
	return &t->groups[i / t->connection_count]->connections[i % t->connection_count];
}

#endif

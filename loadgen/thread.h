/* SPDX-License-Identifier: MIT */
/* A load thread: its connections, its event loop, its part of the load. It shares nothing with other load
 * threads but the plan, read-only except for a few atomics; what it counts it hands over once a second.
 *
 * Closed loop: a connection keeps up to `pipeline` requests on their way, sent `batch` at a time.
 * Open loop: when a request falls due it goes to the connection that has been idle longest, else to one
 * with room in its pipeline; while none has room it waits, and its latency counts from when it was due.
 * Blocking: no event loop; one connection, write, read, as a plain client does (blocking.c).
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
#include "on_error.h"
#include "pacing.h"
#include "reply.h"
#include "socket.h"
#include "stats.h"
#include "timers.h"
#include "workload.h"

/* Of a log entry that never got as far as a connection. */
#define NO_CONNECTION UINT32_MAX

/* A request on its way. A key's number is below KEY_SPACE_MAX. */
struct pending {
	uint64_t intended_ns, start_ns; /* start_ns 0: never handed to the kernel yet */
	uint64_t key : 40;
	uint64_t tries : 8; /* not 0: it was sent elsewhere, so often since it was last put off (routed.c) */
	uint64_t operation : 8; /* NO_OPERATION: an ASKING before the request behind it */
	uint64_t step : 7;
	uint64_t ends_batch : 1; /* meta_answer.c */
};

enum room { ROOM_NONE, ROOM_IDLE, ROOM_PARTIAL, ROOM_REPLAY };

/* What the kernel did not take at once; rare, so it's apart from the connection. */
struct unsent {
	struct event writable;
	size_t done, length;
	char bytes[];
};

/* Bytes of a reply looked at beyond finding its end: --verify, scans. */
struct inspection;

struct connection {
	struct event readable;
	struct load_thread *thread;
	struct group *group;
	struct pending *pending; /* a ring of ring_size, the pipeline's depth */
	struct unsent *unsent;
	struct inspection *inspection; /* NULL: nobody looks */
	struct tls_session *tls;       /* NULL: plain */
	TAILQ_ENTRY(connection) with_room;
	struct connection *next_to_send;
	uint32_t ring_size, first, in_flight;
	uint32_t to_send; /* the last ones in flight that were not handed to the kernel yet */
	uint32_t id;
	uint32_t taken;	     /* requests since it was opened last */
	uint32_t backoff_ms; /* before it is opened again; doubles with each failure */
	union {
		struct {
			uint32_t asks;	   /* of those in flight, ASKINGs: requests of ours (routed.c) */
			uint8_t greetings; /* answers to set-up commands still to come */
			bool batch_ends;   /* the next answer is to a batch's end (meta_answer.c) */
			bool meta;	   /* memcached's meta commands: answers say whose they are */
		};
		uint64_t odd; /* not 0: an answer may be none to the oldest request */
	};
	int fd;		 /* -1: closed */
	uint8_t room;	 /* the list it's on */
	bool connecting; /* in the kernel's hands, or amid the TLS handshake */
	bool waiting;	 /* a timer will come back to it */
	bool parked;	 /* a profile keeps it idle */
	uint16_t local_port;
	uint64_t begun_ns;	       /* when it was begun to be opened again */
	uint64_t opened_ns, closed_ns; /* closed_ns 0: open to the end */
	union reply_scanner scan;
};

TAILQ_HEAD(connection_list, connection);

/* Requests in order, without a connection (routed.c). A ring that grows. */
struct waiting {
	struct pending *ring;
	uint32_t first, count, room;
};

/* A thread's connections to one server. Against a single server there is one group; with several, requests
 * have to go to a certain one of them, and wait with it while none of its connections has room (routed.c). */
struct group {
	struct connection_list idle, partial; /* those with room */
	struct connection *connections;
	struct pending *rings;
	uint32_t count;
	const struct endpoint *endpoint;
	uint16_t node;		    /* its number among struct nodes */
	struct waiting queue, asks; /* for room; those in `asks` behind an ASKING */
	uint64_t last_ok_ns;	    /* the last answer that was no error */
};

/* What all threads are to do; read-only while they run, but for the atomics. */
struct load_plan {
	const struct workload *workload;
	struct mix mix;
	uint64_t start_ns, end_ns; /* end_ns: PACING_NEVER without a duration */
	uint64_t measure_ns;	   /* requests due before it are warm-up: logged, not counted */
	uint64_t log_over_ns;	   /* quicker requests stay out of the log, unless they failed */
	uint64_t drain_ns, think_ns, timeout_ns; /* 0: none */
	uint64_t seed;
	uint32_t pipeline, batch;
	uint32_t reconnect_after; /* requests on a connection; 0: it stays */
	uint32_t connections;	  /* over all threads */
	const struct profile *connections_over_time;
	bool open_loop, blocking, no_wait;
	bool resp3;	   /* the server may push */
	bool stamped;	   /* a request says when it was due, in a closed loop too */
	bool replay_loop;  /* a replay begins again when it is through */
	uint32_t first_id; /* of the test's first connection */
	uint32_t database; /* that a connection is in when it was opened */
	enum on_error on_error;
	uint32_t backoff_ms;
	struct endpoint endpoint;    /* of the one server, when there is one */
	struct nodes *nodes;	     /* NULL: there is one */
	const struct ketama *behind; /* what the log says of each request (behind.h); NULL: nothing */
	uint64_t retry_ns;	     /* how long a request is sent again when a server sent it away */
	atomic_uint next_connection; /* numbers for connections opened while it runs */
	uint64_t max_errors;	     /* 0: no limit */
	atomic_uint_fast64_t errors;
	atomic_bool stop;    /* send nothing more, await answers for a second at most */
	atomic_bool abandon; /* await nothing more */
	atomic_bool gave_up; /* an error ended the run */
	int done_fd;	     /* eventfd: a thread has ended, or `stop` was set */
};

/* The first wrong byte that --verify found. */
struct wrong_byte {
	bool found;
	uint64_t key;
	int64_t offset;
};

struct load_thread {
	struct load_plan *plan;
	struct event_base *base;
	struct group **groups;
	uint32_t group_count;
	struct routing *routing;   /* NULL: one server, one group */
	uint32_t connection_count; /* of each group */
	uint32_t alive;		   /* connections that send or will be opened again */
	uint32_t active;	   /* those that a profile lets send: the first ones */
	uint32_t lost;		   /* connections that broke; not those closed because time was up */
	uint32_t index;
	int cpu;	    /* to run on; -1: anywhere */
	uint64_t left;	    /* requests still to be taken up; closed loop */
	uint64_t in_flight; /* over all connections */
	uint64_t give_up_ns;
	bool stopping, finished;
	bool counting;	       /* warm-up is over */
	const char *broken;    /* why the last lost connection was lost */
	char broken_text[448]; /* what that may lie in */
	struct wrong_byte wrong;

	struct replay_thread *replay; /* NULL: no recording is replayed */
	struct chooser chooser;
	struct request_buffer requests;
	struct bytes key_name; /* scratch */
	char *read_buffer;
	struct pacing pacing;
	struct timers timers;
	uint64_t armed_ns; /* what due_fd is set to */
	int due_fd, tick_fd, wake_fd;
	struct event due_event, tick_event, wake_event, timers_event;

	struct log_lane lane;
	struct stats *stats;  /* the second that runs */
	uint64_t second_ns;   /* when it began */
	pthread_mutex_t lock; /* of the two below */
	struct stats *ready, *spare;

	pthread_t handle;
	atomic_int tid;	   /* 0 until it runs */
	atomic_uint ended; /* 1 once it has */
	uint64_t cpu_ns;   /* once it has ended */
};

enum { READ_BYTES = 64 << 10 };

/* A redirected request takes an ASKING with it, so two places where one has room. */
#define RING_SIZE(plan) ((plan)->nodes ? 2 * (plan)->pipeline : (plan)->pipeline)

/* Connection i of all a thread has, i < group_count * connection_count. */
static inline struct connection *thread_connection(const struct load_thread *t, uint32_t i)
{
	return &t->groups[i / t->connection_count]->connections[i % t->connection_count];
}

/* A thread of `count` (> 0) connections to each server, without any yet. Negative errno. */
int load_thread_init(struct load_thread *t, struct load_plan *plan, uint32_t index, uint32_t count,
		     struct request_log *log);
/* Adds a group of connections to `endpoint`, which is that of `node` where there are several. fds[i] is
 * connection first_id + i, connected, set up and non-blocking; with NULL they are all opened now, in the
 * background. Takes over the descriptors in any case. NULL: out of memory. */
struct group *load_thread_connect(struct load_thread *t, const struct endpoint *endpoint, uint16_t node,
				  const int *fds, uint32_t first_id);
/* `left`, `chooser`, `pacing` and `cpu` are this thread's part; plan->start_ns must be set. */
int load_thread_start(struct load_thread *t);
/* Tells it that plan->stop or plan->abandon was set. */
void load_thread_wake(struct load_thread *t);
/* The last whole second's counts, or NULL; given back (emptied) with load_thread_return. */
struct stats *load_thread_take(struct load_thread *t);
void load_thread_return(struct load_thread *t, struct stats *s);
void load_thread_join(struct load_thread *t);
void load_thread_free(struct load_thread *t);
/* Hands over a second's counts, flushes the log, and sees whether time is up. */
void load_thread_tick(struct load_thread *t, uint64_t now_ns);

/* ---- connection.c, the hot path ---- */

/* Takes up as many requests as there is room and reason for, and sends them. Closed loop. */
void connection_refill(struct connection *c, uint64_t now_ns);
/* Sets the timer for the next request that falls due. Open loop. */
void arm_due(struct load_thread *t);
/* Hands out requests that are due to connections with room, and sets the timer for the next. Open loop. */
void open_loop_pump(struct load_thread *t, uint64_t now_ns);
/* Puts the connection on the list that it belongs to now. Open loop only. */
void settle_room(struct connection *c);
void leave_room(struct connection *c);
/* The connection of a group that has been idle longest, else one with room, else NULL. */
static inline struct connection *first_with_room(const struct group *g)
{
	struct connection *c = TAILQ_FIRST(&g->idle);

	return c ? c : TAILQ_FIRST(&g->partial);
}
static inline uint32_t ring_index(const struct connection *c, uint32_t at)
{
	uint32_t size = c->ring_size, i = c->first + at;

	return i < size ? i : i - size;
}
/* Adds one request to those in flight; it's due at intended_ns (0: when it is sent). */
void take_up(struct connection *c, uint64_t intended_ns);
/* Writes the requests that were taken up since the last call; behind what the kernel did not take yet, once
 * it has. now_ns 0: not known. */
void send_batch(struct connection *c, uint64_t now_ns);
/* Counts requests due up to now and never sent. */
void fail_unsent(struct load_thread *t, uint64_t now_ns);
/* Ends the loop when nothing is on its way and nothing more will be sent. */
void check_finished(struct load_thread *t, uint64_t now_ns);
/* The event handlers of an open connection. */
void connection_readable(evutil_socket_t fd, short what, void *arg);
/* Keeps what the kernel did not take, to be written when it can. */
void keep_unsent(struct connection *c, const char *bytes, size_t length);

/* ---- answers.c, the hot path's other half ---- */

/* Takes the answers in at..end. False: the connection is gone. */
bool take_answers(struct connection *c, const char *at, const char *end, uint64_t now_ns);
/* A request ended: counts it and logs it. */
void record_end(struct load_thread *t, uint32_t connection, const struct pending *p, uint64_t end_ns,
		unsigned status, uint64_t bytes);
/* Bytes that no finished request brings with it; warm-up's don't count. */
static inline void count_bytes(struct load_thread *t, unsigned operation, uint64_t bytes)
{
	struct operation_stats *s = t->stats->operations[operation];

	if (t->counting && s) /* a SELECT of our own (replay) is nobody's */
		s->bytes += bytes;
}

/* ---- meta_answer.c: memcached's meta commands ---- */

enum meta_match { META_ANSWERS_OLDEST, META_ANSWERS_NONE, META_LOST };

/* A meta reply is complete: sees whose it is, and ends the reads before it that have silently missed.
 * META_LOST: it can't be, and the connection is gone. */
enum meta_match meta_answer(struct connection *c, uint64_t now_ns);
/* Of a batch of `count` requests that lie up to byte `at` of the request buffer: adds what makes the server
 * show that it is through with quiet reads. Returns the byte behind it, 0 when memory is short. */
size_t meta_end_batch(struct connection *c, uint32_t count, size_t at);

/* ---- lifecycle.c: opening, breaking and opening again ---- */

/* Makes connection `id` of a group, whose fd (and tls) is set; -1: to be opened with connection_begin. */
int connection_init(struct connection *c, struct load_thread *t, struct group *g, uint32_t id,
		    struct pending *ring);
/* Opens a connection that is closed. */
void connection_begin(struct connection *c, uint64_t now_ns);
/* Fails what is in flight with `status` and closes; opens it again if that is the policy. */
void connection_fail(struct connection *c, unsigned status, const char *why);
/* Closes an idle connection and opens it again (reconnect_after). */
void connection_renew(struct connection *c, uint64_t now_ns);
/* A pending connect() has ended, one way or the other. False: it failed, and was dealt with. */
bool connection_arrived(struct connection *c);
/* Has the TLS handshake of a connection that was just opened, where there is to be one, and waits for it; for
 * a thread without an event loop. False: it failed, and *why says why. */
bool connection_secure(struct connection *c, const char **why);
/* Ends handshakes that take too long. */
void expire_handshakes(struct load_thread *t, uint64_t now_ns);
/* Closes the descriptor, with its TLS session. */
void close_socket(struct connection *c);
/* Sends nothing for the think time. */
void connection_think(struct connection *c, uint64_t now_ns);
/* Starts looking for requests older than the time-out and following the profile of connections. */
void watch_connections(struct load_thread *t);
/* Counts an error against the plan's limits; ends the run when it is one too many. */
void count_error(struct load_thread *t);

/* ---- routed.c: one of several servers for each request ---- */

/* What a thread needs for it. -ENOMEM. */
int routing_init(struct load_thread *t);
void routing_free(struct load_thread *t);
/* Requests to the group's node go to the group from now on. */
void routing_add(struct load_thread *t, struct group *g);
/* What the thread saw of outages. */
struct outages;
const struct outages *routing_outages(const struct load_thread *t);
/* Takes up what is due, or what there is room for, sends it where it belongs, and sees to what waits. */
void routed_pump(struct load_thread *t, uint64_t now_ns);
/* A connection is there, or has room again. */
void routed_room(struct connection *c, uint64_t now_ns);
/* A connection was opened, so its node can be reached. */
void routed_arrived(struct connection *c);
/* A connection is gone: the others go on. */
void routed_settle(struct load_thread *t, uint64_t now_ns);
/* The answer to *p, the connection's oldest request, sends it elsewhere, or puts it off. False: it does not.
 */
bool routed_again(struct connection *c, const struct pending *p, uint64_t now_ns);
/* Sends the next step of an operation where that belongs. */
void routed_step(struct connection *c, const struct pending *p);
/* A connection broke: what was sent has failed, the rest finds another way. */
void routed_lost(struct connection *c, uint32_t first, uint32_t in_flight, uint32_t unwritten,
		 unsigned status, uint64_t now_ns);
/* Counts a request that ended by its server. */
void routed_ended(struct load_thread *t, struct group *g, const struct pending *p, uint64_t now_ns,
		  unsigned status);
/* Ends all that waits. */
void routed_give_up(struct load_thread *t, uint64_t now_ns);
/* A connect() failed, or the connection broke: the topology may be another by now. */
void routed_trouble(struct connection *c, uint64_t now_ns);
extern const char routed_asking[];
enum { ROUTED_ASKING_BYTES = 16 };

/* ---- blocking.c ---- */

/* Does this thread's load on its one connection without an event loop. */
void run_blocking(struct load_thread *t);
/* Whether to wait on for an answer, since_ns being when the last one came; else the connection has failed. */
bool blocking_patience(struct connection *c, uint64_t now_ns, uint64_t since_ns);

#endif

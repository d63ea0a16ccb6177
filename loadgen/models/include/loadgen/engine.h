/* SPDX-License-Identifier: MIT */
/* What load threads share: connections, requests in flight, answers, and the load model that drives them. */
#ifndef FORKTAIL_LOADGEN_ENGINE_H
#define FORKTAIL_LOADGEN_ENGINE_H

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/util.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "loadgen/net.h"
#include "loadgen/options.h"
#include "loadgen/pending_queue.h"
#include "loadgen/protocol.h"
#include "loadgen/results.h"
#include "loadgen/timers.h"
#include "loadgen/workload.h"
#include "recording/recording.h"

/* A connection: its requests in flight, the parser state of its answers, and the two events that drive it. */

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
	struct tcp_counts tcp;
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
	struct connection_list *list;	 /* the list it is on; NULL: none */
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
			bool batch_ends;   /* the next answer is to a batch's end (answers.c) */
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
	struct connection_list idle, partial; /* those with space */
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

/* The load model: decides which request is sent when, and on which connection.
 *
 * A thread has one model for its whole life, chosen once (event_loop.c). Shared code calls the model
 * through these functions, and the model calls shared code directly, so that no file calls back to a file
 * that calls it. The models:
 *
 *   closed loop       a connection keeps up to `pipeline` requests outstanding, sent `batch` at a time
 *   open loop         a request that falls due goes to the connection that has been idle longest
 *   replay            a recording: each connection follows the chain of its records
 *   routed loops      the first two over several servers: a request goes to the server of its key
 *   routed replay     a recording on several servers
 *   blocking          either of the first two without an event loop: write, then read, as a plain client does
 *
 * The table is also used on the hot path, where callgrind showed no cost: a load thread took 1,231
 * instructions for a GET in a closed loop at pipeline 1 with the table, and 1,235 with inlined branches
 * instead. */

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
	/* Nothing more is sent: ends requests that were due by now, or fall due later. May be
	 * NULL. */
	void (*fail_unsent)(struct load_thread *t, uint64_t now_ns);
	/* Ends requests that wait without a connection. May be NULL. */
	void (*give_up)(struct load_thread *t, uint64_t now_ns);

	/* Handlers of an open connection's events; NULL without an event loop. */
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

/* The task of all load threads of a test. Read-only while they run, except for what threads and the main
 * thread tell each other about the end. */

/* How a test ends early. */
struct ending {
	atomic_uint_fast64_t errors;
	atomic_bool stop;    /* send nothing more, await answers for at most a second */
	atomic_bool abandon; /* await nothing more */
	atomic_bool gave_up; /* an error ended the run */
	int done_fd;	     /* eventfd: a thread has ended, or `stop` was set */
};

struct load_plan {
	const struct options *options;
	const struct workload *workload;
	struct mix mix;
	uint64_t start_ns, end_ns; /* end_ns: PACING_NEVER without a duration */
	uint64_t measure_ns;	   /* requests due before it are warm-up: logged, not counted */
	uint64_t log_over_ns;	   /* faster requests are not logged, unless they failed */
	bool open_loop;		   /* `nodes` and a replay also determine the threads' load_model */
	bool stamped;		   /* the message contains when its request was due, in a closed loop too */
	uint32_t first_id;	   /* of the test's first connection */
	struct endpoint endpoint;  /* of the server, if there is only one */
	struct nodes *nodes;	   /* NULL: there is one server */
	const struct ketama *proxy_ring; /* finds each request's server for the log; NULL: no proxy */
	atomic_uint next_connection;	 /* numbers for connections opened during the run */
	struct ending ending;
};

/* Slots for requests on one connection: a redirected request takes an ASKING with it, so two slots instead of
 * one for a single server. */
static inline uint32_t plan_ring_size(const struct load_plan *plan)
{
	return plan->nodes ? 2 * plan->options->pipeline : plan->options->pipeline;
}

/* A load thread: its connections, its event loop, its part of the load. It shares only the plan with other
 * load threads, read-only except for how the run ends. It hands over its counters once per
 * second. Its model decides which request is sent when. */

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

/* Passes counters to the main thread (event_loop.c). */
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
	size_t group_room;
	uint32_t connection_count;    /* of each group */
	struct routing *routing;      /* models.h; NULL: one server, one group */
	struct replay_thread *replay; /* replay_lanes.c's; NULL: no recording is replayed */

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

/* Reading and writing on the hot path, plain or over TLS: one well-predicted branch. */

static inline ssize_t transport_read(const struct connection *c, void *to, size_t size)
{
	if (__builtin_expect(c->arrival_times, 0))
		return arrival_read(c->fd, to, size, &c->thread->arriving.stamp_ns);
	return __builtin_expect(c->tls != NULL, 0) ? tls_read(c->tls, to, size) : read(c->fd, to, size);
}

static inline ssize_t transport_write(const struct connection *c, const void *from, size_t size)
{
	return __builtin_expect(c->tls != NULL, 0) ? tls_write(c->tls, from, size) : write(c->fd, from, size);
}

/* Whether the next read returns data although the last one returned less than requested. */
static inline bool transport_has_unread(const struct connection *c)
{
	return __builtin_expect(c->tls != NULL, 0) && tls_has_unread(c->tls);
}

/* A TLS session's error text, stored beyond the session: valid as long as the thread, or until the next
 * call. */
static inline const char *transport_tls_why(const struct connection *c)
{
	struct trouble *trouble = &c->thread->trouble;

	snprintf(trouble->text, sizeof(trouble->text), "the server %s", tls_why(c->tls));
	return trouble->text;
}

/* Why a read returned n, or a write -1. Valid as long as the thread, or until the next call. */
static inline const char *transport_why(const struct connection *c, ssize_t n)
{
	int error = errno;

	if (n == 0)
		return "the server closed the connection";
	if (!c->tls || error != EPROTO)
		return strerror(error);
	return transport_tls_why(c);
}

/* Lists of a group's connections with space for a request: idle ones, and others. A request that can choose
 * its connection (open loop, several servers) takes one of these. */

/* Whether the connection may send as soon as its pipeline has space. */
static inline bool can_send(const struct connection *c)
{
	const struct load_plan *plan = c->thread->plan;

	return c->fd >= 0 && !c->backlog && !c->connecting && !c->parked &&
	       (!plan->options->reconnect_after || c->taken < plan->options->reconnect_after);
}

/* The connection of a group that has been idle longest, otherwise one with space, otherwise NULL. */
static inline struct connection *connection_list_first(const struct group *g)
{
	struct connection *c = TAILQ_FIRST(&g->idle);

	return c ? c : TAILQ_FIRST(&g->partial);
}

/* Appends a connection, which is on no list, to a list. */
static inline void connection_list_add(struct connection *c, struct connection_list *list)
{
	TAILQ_INSERT_TAIL(list, c, list_entry);
	c->list = list;
}

/* Removes it from its list, if any. */
static inline void connection_list_remove(struct connection *c)
{
	if (c->list)
		TAILQ_REMOVE(c->list, c, list_entry);
	c->list = NULL;
}

/* Moves the connection to the list that fits its state. */
void connection_list_update(struct connection *c);

/* Events of an open connection in an event loop: `on_readable` and `on_writable` of most load models. */

void connection_readable(evutil_socket_t fd, short what, void *arg);
void connection_writable(evutil_socket_t fd, short what, void *arg);

/* Cuts received bytes into answers. The reader passes on everything that one read() returned, with or without
 * an event loop. */

/* Handles the answers in the `size` bytes in the thread's read buffer, received at now_ns. False: the
 * connection is gone. */
bool take_answers(struct connection *c, size_t size, uint64_t now_ns);

/* How a load thread ends: no work is left, or errors ended the run. */

/* Ends the loop when nothing is outstanding and nothing more will be sent. */
void finish_if_done(struct load_thread *t, uint64_t now_ns);
/* Whether requests are left and it is time to send them: `more` of closed loops. */
bool closed_more(struct load_thread *t, uint64_t now_ns);
/* Counts requests that were due by now and never sent; after loss_is_final(), those due later, too. */
void fail_unsent(struct load_thread *t, uint64_t now_ns);
/* Whether all connections are lost and none will be reopened, although the run was not ended: what falls due
 * until its planned end will never be sent. */
bool loss_is_final(const struct load_thread *t);
/* Counts an error against the plan's limits. Ends the run when the limit is exceeded. */
void count_error(struct load_thread *t);

/* Opening, breaking and reopening of connections. */

/* Creates connection `id` of a group, whose fd (and tls) is set; -1: to be opened with connection_begin. */
int connection_init(struct connection *c, struct load_thread *t, struct group *g, uint32_t id,
		    struct pending_request *ring);
/* Opens a connection that is closed. */
void connection_begin(struct connection *c, uint64_t now_ns);
/* Fails what is in flight with `status` and closes. Reopens the connection if that is the policy. */
void connection_fail(struct connection *c, unsigned status, const char *why);
/* Closes an idle connection and reopens it (reconnect_after). */
void connection_renew(struct connection *c, uint64_t now_ns);
/* Reopens it after a pause, which doubles. */
void connection_try_later(struct connection *c, uint64_t now_ns);
/* Sets the connection's one timer. */
void connection_come_back(struct connection *c, uint64_t when_ns, void (*act)(void *, uint64_t));
/* A pending connect() has completed. False: it failed, and was handled. */
bool connection_finish_connect(struct connection *c);
/* Ends handshakes that take too long. */
void expire_handshakes(struct load_thread *t, uint64_t now_ns);

/* Stores what the kernel did not accept, to be written later: `on_backlog` of models with an event loop. */
void connection_keep_backlog(struct connection *c, const char *bytes, size_t length);
/* Ends everything in flight with `status`: `on_loss` of most models. */
void fail_in_flight(struct connection *c, uint32_t first, uint32_t in_flight, uint32_t unwritten,
		    unsigned status, uint64_t now_ns);

/* Parts of it, for a thread that opens its connection itself (loops.c). Closes it with nothing in
 * flight. */
void connection_close(struct connection *c, uint64_t now_ns);
/* It has another socket: nothing was sent or received, but answers to the greeting will arrive. */
void connection_reset(struct connection *c);
/* Performs the TLS handshake of a new connection, if there is one, and waits for it. False: it failed, for
 * the reason in *why. */
bool connection_secure(struct connection *c, const char **why);
/* It was reopened, started at life.begun_ns: records the fields for the log and requests arrival times. */
void connection_note_open(struct connection *c);
/* A request took long, or the connection ends: logs what TCP did with it since the last look. Only where it
 * may have waited for TCP, at the end. */
void connection_was_slow(struct connection *c, uint64_t now_ns);
void connection_note_end(struct connection *c, uint64_t now_ns);
/* A connect() failed: counts it. `why` NULL: same reason as before. */
void connection_count_refusal(struct connection *c, const char *why, uint64_t now_ns);
/* Writes its log entry. */
struct ft_connection connection_record(const struct connection *c);
/* Closes the descriptor and its TLS session. */
void close_socket(struct connection *c);

/* Slow requests. */

/* So long after it was sent, a request is slow. As the recorder's rule for keys, which counts from when the
 * server read it. */
enum { SLOW_REQUEST_NS = 1000000 };

/* The oldest request was answered after SLOW_REQUEST_NS: logs what may explain it, its key with --keys and
 * what TCP did. Apart, so that the hot path only compares. */
void request_was_slow(struct connection *c, uint64_t now_ns);

/* memcached's meta commands, where some requests get no answer. */

enum meta_match { META_ANSWERS_OLDEST, META_ANSWERS_NONE, META_LOST };

/* A meta reply is complete: finds its request, and ends reads before it that missed silently. META_LOST: it
 * belongs to none, and the connection is gone. */
enum meta_match meta_answer(struct connection *c, uint64_t now_ns);
/* For a batch of `count` requests that ends at byte `at` of the request buffer: appends the command that
 * shows when the server has finished the quiet reads. Returns the offset after it, or 0 without memory. */
size_t meta_end_batch(struct connection *c, uint32_t count, size_t at);

/* The end of a request: its counters and its log entry. */

/* Requests without an error that differ in nothing that is recorded, as those of a pipelined batch often do.
 */
struct equal_requests {
	struct ft_request request;
	uint64_t bytes; /* of all of them, sent and received */
	uint32_t count;
};

/* Requests of the load ended: counts them and logs them. */
void record_equal(struct load_thread *t, struct equal_requests *e);

/* The log entry of a request that ended. */
static inline struct ft_request ended_request(uint32_t connection, const struct pending_request *p,
					      uint64_t end_ns, unsigned status)
{
	return (struct ft_request){
	    .intended_ns = p->intended_ns,
	    .start_ns = p->start_ns,
	    .end_ns = end_ns,
	    .connection = connection,
	    .op = p->operation,
	    .status = (uint8_t)status,
	};
}

/* A request of the load ended: counts it and logs it. */
void record_request(struct load_thread *t, uint32_t connection, const struct pending_request *p,
		    uint64_t end_ns, unsigned status, uint64_t bytes);

/* Any request ended. For a command of the generator itself (a replay's SELECT) nothing is logged. */
static inline void record_end(struct load_thread *t, uint32_t connection, const struct pending_request *p,
			      uint64_t end_ns, unsigned status, uint64_t bytes)
{
	if (!t->plan->workload->operations[p->operation].internal)
		record_request(t, connection, p, end_ns, status, bytes);
}

/* Bytes besides those of finished requests. Those of warm-up don't count. */
static inline void count_bytes(struct load_thread *t, unsigned operation, uint64_t bytes)
{
	struct operation_stats *s = t->stats->operations[operation];

	if (t->counting && s) /* a SELECT of the generator itself (replay) is not counted */
		s->bytes += bytes;
}

/* Sending requests: the load model takes them one by one as it has time or space, and a connection's batch is
 * written with one write(). */

/* Adds one request to those in flight. It is due at intended_ns (0: when it is sent). */
void take_up(struct connection *c, uint64_t intended_ns);
/* Writes the requests that were taken since the last call, after any bytes that the kernel has not accepted
 * yet. now_ns 0: unknown. */
void send_batch(struct connection *c, uint64_t now_ns);
/* Sends the next step of an operation with the next batch, on the connection of the previous one: `step` of
 * models for one server. */
void send_step(struct connection *c, const struct pending_request *p);

/* What the kernel did not accept at once, to be written later. This is rare, so it is separate from the
 * connection. An empty backlog means waiting until a descriptor is writable (a connect(), a TLS handshake).
 */

/* Stores `length` bytes (0: none) for a connection without a backlog, and waits for it to become writable.
 * False: out of memory. */
bool write_backlog_keep(struct connection *c, const char *bytes, size_t length);
/* Sets whether to wait until it is writable. */
void write_backlog_watch(struct connection *c, bool watch);
/* Writes as much as the kernel accepts. 1: all of it is written; 0: not yet; -1: as a write that failed (see
 * transport_why). */
int write_backlog_write(struct connection *c);
/* Drops the backlog, if any. */
void write_backlog_drop(struct connection *c);
#endif

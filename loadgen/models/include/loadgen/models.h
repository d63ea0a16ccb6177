/* SPDX-License-Identifier: MIT */
/* The load models: which request is sent when, and on which connection. */
#ifndef FORKTAIL_LOADGEN_MODELS_H
#define FORKTAIL_LOADGEN_MODELS_H

#include <sys/queue.h>

#include "loadgen/cluster.h"
#include "loadgen/engine.h"
#include "loadgen/nodes.h"
#include "loadgen/replay.h"

/* A thread's connections to one server, created and freed together. */

/* Adds a group of connections to `endpoint`, the endpoint of `node` if there are several. fds[i] is
 * connection first_id + i, connected, set up and non-blocking. With NULL all are opened now, in the
 * background. Takes ownership of the descriptors in any case. NULL: out of memory. */
struct group *group_connect(struct load_thread *t, const struct endpoint *endpoint, uint16_t node,
			    const int *fds, uint32_t first_id);
void group_free(struct group *g);

/* Hands a load thread's counters to the main thread once per second: two sets are exchanged, so that neither
 * thread waits for the other, and the path of a request takes no lock. */

/* For the load thread: hands over a second's counters and flushes the log. */
void hand_over_tick(struct load_thread *t, uint64_t now_ns);
/* For the main thread: the last complete second's counters, or NULL. It returns them (cleared) with
 * hand_over_return. */
struct stats *hand_over_take(struct load_thread *t);
void hand_over_return(struct load_thread *t, struct stats *s);

/* A thread's knowledge of several servers: which one has a key, which of its connections lead there, and when
 * it could not be reached. routed_requests.c decides what is sent where and when. */

struct routing {
	struct nodes *nodes;
	struct group *of_node[NODES_MAX];
	struct bytes scratch;	    /* names of keys */
	struct pending_queue later; /* no node serves them now, or a server asked to retry later */
	struct connection *to_send, **last;
	uint32_t rotation; /* distributes requests that may go to several nodes */
	uint32_t version;  /* version of the topology at the last check */
	uint64_t again_ns; /* when postponed requests are sent again */
	bool ticking, flushing;
	struct outages outages;
};

/* Creates t->routing. -ENOMEM on failure. */
int routing_init(struct load_thread *t);
void routing_free(struct load_thread *t);

/* The next command of a request, and the slot of its key, or ROUTE_ANYWHERE. */
const struct step *routing_step(const struct load_thread *t, const struct pending_request *p);
uint32_t routing_slot(struct load_thread *t, const struct pending_request *p);

/* The node that counts a request that waited for no particular server: the owner of its key, or NULL. */
struct group *routing_blame(struct load_thread *t, const struct pending_request *p);
/* Counts a finished request for its server. */
void routing_count(struct load_thread *t, struct group *g, const struct pending_request *p, uint64_t now_ns,
		   unsigned status);
/* A connect() failed or the connection broke: the topology may have changed. */
void routing_trouble(struct connection *c, uint64_t now_ns);
/* The outages that the thread saw; only for a thread with several servers. */
const struct outages *routing_outages(const struct load_thread *t);

/* A thread's part of a replay: lanes, each a sequence of records whose order is kept. With one server a lane
 * is a connection (replay_lanes.c), with several it has a connection to each server and one outstanding
 * request (routed_requests.c). The thread walks the shared array of records once, to find when each falls
 * due.
 */

/* Which database is selected is not known. */
enum { LANE_NO_DATABASE = UINT32_MAX };

/* A lane's position in its chain. The first part is for one server, the second for several. */
struct lane {
	uint32_t next; /* record, or REPLAY_END */
	uint32_t
	    database;	/* after everything sent to the connection has been executed, or LANE_NO_DATABASE */
	uint64_t round; /* of -l */
	bool selecting; /* a SELECT is outstanding: nothing is sent after it, because it may be refused */

	bool busy;		 /* a request of it is outstanding */
	bool ready;		 /* on the thread's list of lanes */
	uint32_t begin;		 /* first record of an open transaction, or REPLAY_END */
	struct connection *home; /* the transaction's connection; NULL: none yet, or it was left */
	uint32_t due_part;	 /* the first record of the transaction that `home` has not received */
	STAILQ_ENTRY(lane) entry;
};

struct replay_thread {
	const struct replay *replay;
	struct lane *lanes;
	uint32_t first, count; /* lanes of this thread, among the test's */
	uint32_t open;	       /* lanes with a record left */
	uint32_t alive;	       /* the thread's live connections, when last checked */
	uint32_t cursor;       /* the next record to fall due, or REPLAY_END */
	uint64_t cursor_round;
	uint64_t now_ns; /* the time that the cursor has reached */
	uint64_t abandoned;
	int64_t refused;				 /* a database that the server lacks, or -1 */
	uint8_t refusals[(REPLAY_DATABASE_MAX + 1) / 8]; /* a bit for each database */
	bool begun;
	struct connection_list ready;	 /* one server: they have space and something to send */
	STAILQ_HEAD(, lane) ready_lanes; /* several servers: they may send their next record */
};

/* Gives the thread its part: the lanes from number `first` on, among all of the test's. -ENOMEM on
 * failure. */
int replay_begin(struct load_thread *t, uint32_t first);
/* Records that lost connections did not send at full speed. */
uint64_t replay_abandoned_count(const struct load_thread *t);
/* A database that the server refused to a connection of this thread; -1: none. */
int64_t replay_refused_database(const struct load_thread *t);

void lanes_free(struct load_thread *t);

/* When the lane's next record is due, 0 at full speed. PACING_NEVER: nothing is left before the end. */
uint64_t lane_due_ns(const struct load_thread *t, const struct lane *l);
/* Moves to the next record of the chain, or back to the first. */
void lane_step(struct load_thread *t, struct lane *l);
/* Sends nothing more. */
void lane_close(struct replay_thread *rt, struct lane *l);
/* Counts due records that will never be sent. */
void lane_give_up(struct load_thread *t, struct lane *l, uint64_t now_ns);
/* The server lacks this database. */
void lanes_refuse(struct replay_thread *rt, uint32_t database);
/* Counts due records of databases that the server lacks as not sent, until another one is next. */
void lane_skip_refused(struct load_thread *t, struct lane *l, uint64_t now_ns);

/* The lane of the next record that is due by now_ns; NULL: no more are. */
struct lane *lanes_next_due(struct load_thread *t, uint64_t now_ns);
/* When the next record of any lane of the test falls due. */
uint64_t lanes_due_ns(const struct load_thread *t);
/* Nothing more is sent: counts due records, as due_fail_unsent() does. `fail_unsent` of replays. */
void lanes_end(struct load_thread *t, uint64_t now_ns);

/* ---- several servers ---- */

/* The lane of a request for a record. */
struct lane *lane_of(const struct load_thread *t, const struct pending_request *p);
/* A slot whose server receives the lane's commands without a key: in the order of keys, among the lane's. */
uint32_t lane_slot(const struct load_thread *t, const struct pending_request *p);
/* The lane may send its next record. */
void lane_make_ready(struct replay_thread *rt, struct lane *l);
/* The lane's next record as a request, taken out of its chain. */
struct pending_request lane_take(struct load_thread *t, struct lane *l, uint64_t due_ns);
/* Its request has ended. */
void lane_release(struct load_thread *t, const struct pending_request *p);

/* Transactions. All commands of one are executed on one connection. If a server redirects one of them, or the
 * connection breaks, the commands before it are sent again elsewhere, without figures. */

/* The connection that has the request's transaction, or NULL. */
struct connection *lane_home(const struct load_thread *t, const struct pending_request *p);
/* Whether another part of its transaction must be sent on `c` before the request; *part is that. */
bool lane_needs_part(struct load_thread *t, struct connection *c, const struct pending_request *p,
		     struct pending_request *part);
/* Whether the command is queued by the server, so that ASKING before it would be queued, too. */
bool lane_is_queued(const struct load_thread *t, const struct pending_request *p);
/* The request is sent elsewhere. Returns whether *discard must be sent on the connection it was sent on. */
bool lane_leave(struct load_thread *t, const struct connection *c, const struct pending_request *p,
		struct pending_request *discard);
/* The connection broke. */
void lane_lose(struct load_thread *t, const struct connection *c);

/* Creates, starts, wakes, joins and frees a load thread. */

/* Creates a thread of `count` (> 0) connections per server, without any yet. Negative errno. */
int load_thread_init(struct load_thread *t, struct load_plan *plan, uint32_t index, uint32_t count,
		     struct request_log *log);
/* `left`, `chooser`, `pacing` and `cpu` are this thread's part. plan->start_ns must be set. */
int load_thread_start(struct load_thread *t);
/* Wakes it because the plan's `stop` or `abandon` was set. */
void load_thread_wake(struct load_thread *t);
void load_thread_join(struct load_thread *t);
void load_thread_free(struct load_thread *t);
#endif

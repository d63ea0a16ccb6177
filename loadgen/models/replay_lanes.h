/* SPDX-License-Identifier: MIT */
/* A thread's part of a replay: lanes, each a sequence of records whose order is kept. With one server a lane
 * is a connection (replay_send.c), with several it has a connection to each server and one outstanding
 * request (routed_replay.c). The thread walks the shared array of records once, to find when each falls
 * due. */
#ifndef FORKTAIL_LOADGEN_REPLAY_LANES_H
#define FORKTAIL_LOADGEN_REPLAY_LANES_H

#include <sys/queue.h>

#include "loadgen/engine/connection_list.h"
#include "loadgen/engine/load_thread.h"
#include "loadgen/replay/replay.h"

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

#endif

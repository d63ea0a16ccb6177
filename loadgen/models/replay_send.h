/* SPDX-License-Identifier: MIT */
/* Replays a recording on one server: each of a thread's connections follows the chain of its own records. The
 * commands of a recorded client stay in order on one connection, so that transactions stay complete; or the
 * commands of a key do (--replay-order). So a record cannot go to the connection that has been idle longest,
 * as in the open loop. A record that falls due while its connection has no space waits, and its latency
 * counts from when it was due. At full speed nothing is due by the clock: each connection sends its next
 * record as soon as it has space. With several servers, routed_replay.c sends the records. */
#ifndef FORKTAIL_LOADGEN_REPLAY_SEND_H
#define FORKTAIL_LOADGEN_REPLAY_SEND_H

#include <stdint.h>

#include "loadgen/engine/load_model.h"

extern const struct load_model replay_send;

/* Gives the thread its part: the lanes from number `first` on, among all of the test's. -ENOMEM on
 * failure. */
int replay_begin(struct load_thread *t, uint32_t first);
/* Records that lost connections did not send at full speed. */
uint64_t replay_abandoned_count(const struct load_thread *t);
/* A database that the server refused to a connection of this thread; -1: none. */
int64_t replay_refused_database(const struct load_thread *t);

#endif

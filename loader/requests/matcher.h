/* SPDX-License-Identifier: MIT */
/* Finds requests in the reads and writes of connections. A request begins and ends where the scanner says; it
 * arrived when its first byte did, was read with its last byte, and was answered by a write.
 *
 * Which write answers it follows from how servers work: one that is synchronous (Redis, memcached) answers
 * all that it has read from a connection before it reads more from it, unless the client reads too slowly:
 * then the socket's buffer is full, or a large write was cut. So the requests between two reads share the
 * writes between them. One write answers all of them; as many writes as requests answer one each; otherwise
 * their bytes are divided evenly, and the requests are counted as an exchange. An asynchronous one (a proxy)
 * may read more before it answers; its requests are grouped until the connection is idle.
 *
 * After a gap, or where bytes were not captured, a connection's requests are left out and counted until a
 * read that follows a write begins like a request. */
#ifndef FORKTAIL_LOADER_MATCHER_H
#define FORKTAIL_LOADER_MATCHER_H

#include <stddef.h>
#include <stdint.h>

#include "loader/requests/request_messages.h"

#ifdef __cplusplus
extern "C" {
#endif

struct matcher;

/* NULL: no memory. */
struct matcher *matcher_open(request_handler handler, void *context);
void matcher_close(struct matcher *m);
/* The target's protocol, from now on. Of others it is guessed from their first bytes. */
void matcher_target(struct matcher *m, const struct request_target *target);
/* One event of bpf/request_events.h. Events of a connection come in order. */
void matcher_event(struct matcher *m, const void *event, size_t bytes);
/* Call it often: answers that ended a while ago are complete. */
void matcher_tick(struct matcher *m, uint64_t now_ns);
/* All answers are complete; the counts follow. */
void matcher_finish(struct matcher *m);

#ifdef __cplusplus
}
#endif

#endif

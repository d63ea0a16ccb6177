/* SPDX-License-Identifier: MIT */
/* Connections come and go: opening, breaking and opening again. */
#ifndef FORKTAIL_LOADGEN_LIFECYCLE_H
#define FORKTAIL_LOADGEN_LIFECYCLE_H

#include "load_thread.h"

/* Makes connection `id` of a group, whose fd (and tls) is set; -1: to be opened with connection_begin. */
int connection_init(struct connection *c, struct load_thread *t, struct group *g, uint32_t id,
		    struct pending_request *ring);
/* Opens a connection that is closed. */
void connection_begin(struct connection *c, uint64_t now_ns);
/* Fails what is in flight with `status` and closes; opens it again if that is the policy. */
void connection_fail(struct connection *c, unsigned status, const char *why);
/* Closes an idle connection and opens it again (reconnect_after). */
void connection_renew(struct connection *c, uint64_t now_ns);
/* Has it opened again after a pause, which doubles. */
void connection_try_later(struct connection *c, uint64_t now_ns);
/* Sets the connection's one timer. */
void connection_come_back(struct connection *c, uint64_t when_ns, void (*act)(void *, uint64_t));
/* A pending connect() has ended, one way or the other. False: it failed, and was dealt with. */
bool connection_finish_connect(struct connection *c);
/* Ends handshakes that take too long. */
void expire_handshakes(struct load_thread *t, uint64_t now_ns);

/* Keeps what the kernel did not take, to be written when it can: of models with an event loop the
 * `on_backlog`.
 */
void connection_keep_backlog(struct connection *c, const char *bytes, size_t length);
/* Ends all that was in flight with `status`: of most models the `on_loss`. */
void fail_in_flight(struct connection *c, uint32_t first, uint32_t in_flight, uint32_t unwritten,
		    unsigned status, uint64_t now_ns);

/* Parts of it, for a thread that opens its connection itself (blocking_loops.c). Closes, with nothing in
 * flight. */
void connection_close(struct connection *c, uint64_t now_ns);
/* It has another socket: nothing was sent, nothing came, but answers to the greeting will. */
void connection_reset(struct connection *c);
/* Has the TLS handshake of a connection that was just opened, where there is to be one, and waits for it.
 * False: it failed, and *why says why. */
bool connection_secure(struct connection *c, const char **why);
/* It was opened again, begun at life.begun_ns: notes what the log has of that, and asks for arrival times. */
void connection_note_open(struct connection *c);
/* A connect() failed: counts it. `why` NULL: as before. */
void connection_count_refusal(struct connection *c, const char *why, uint64_t now_ns);
/* What the log has of it. */
struct ft_connection connection_record(const struct connection *c);
/* Closes the descriptor, with its TLS session. */
void close_socket(struct connection *c);

#endif

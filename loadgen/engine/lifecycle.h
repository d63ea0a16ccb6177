/* SPDX-License-Identifier: MIT */
/* Opening, breaking and reopening of connections. */
#ifndef FORKTAIL_LOADGEN_LIFECYCLE_H
#define FORKTAIL_LOADGEN_LIFECYCLE_H

#include "load_thread.h"

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

/* Parts of it, for a thread that opens its connection itself (blocking_loops.c). Closes it with nothing in
 * flight. */
void connection_close(struct connection *c, uint64_t now_ns);
/* It has another socket: nothing was sent or received, but answers to the greeting will arrive. */
void connection_reset(struct connection *c);
/* Performs the TLS handshake of a new connection, if there is one, and waits for it. False: it failed, for
 * the reason in *why. */
bool connection_secure(struct connection *c, const char **why);
/* It was reopened, started at life.begun_ns: records the fields for the log and requests arrival times. */
void connection_note_open(struct connection *c);
/* A connect() failed: counts it. `why` NULL: same reason as before. */
void connection_count_refusal(struct connection *c, const char *why, uint64_t now_ns);
/* Writes its log entry. */
struct ft_connection connection_record(const struct connection *c);
/* Closes the descriptor and its TLS session. */
void close_socket(struct connection *c);

#endif

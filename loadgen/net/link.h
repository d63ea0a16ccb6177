/* SPDX-License-Identifier: MIT */
/* A connection off the hot path, for the generator's own commands: the set-up before a load, a cluster's
 * topology, the observer. It uses a non-blocking socket and poll(), so that every wait ends at its deadline
 * or when it is stopped. hiredis parses answers and formats commands but does not get the socket: its own
 * calls can't be interrupted, time each read() separately, so that a server that sends single bytes blocks
 * them without limit, and store replies of any length. */
#ifndef FORKTAIL_LOADGEN_LINK_H
#define FORKTAIL_LOADGEN_LINK_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "socket.h"
#include "tls.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How long to wait for an answer to a set-up command, and its maximum size. INFO has some 10 KB. */
#define LINK_ANSWER_NS 5000000000u
enum { LINK_ANSWER_BYTES = 1 << 20 };

struct link {
	int fd;			 /* -1: closed */
	int stop_fd;		 /* readable: end every wait. -1: none */
	struct tls_session *tls; /* NULL: no TLS */
	uint64_t patience_ns;	 /* for an answer; 0: LINK_ANSWER_NS */
	size_t answer_bytes;	 /* maximum size of an answer; 0: LINK_ANSWER_BYTES */
	redisReader *reader;	 /* for link_ask; created when first needed */
	int failed;		 /* why link_ask had no answer: a negative errno */
	char where[160];	 /* the start of sentences about it */
	char error[480];
};

/* A link that is closed. */
#define LINK_CLOSED ((struct link){.fd = -1, .stop_fd = -1})

/* All of these return 0 (link_receive: bytes) or a negative errno: -ECANCELED for the stop, -ETIMEDOUT for
 * the deadline (CLOCK_MONOTONIC), -ECONNRESET if the peer closed the connection, -EPROTO if TLS failed. */
int link_open(struct link *l, const struct server_socket *to, uint32_t number, uint64_t deadline_ns);
/* Performs the TLS handshake; call tls_begin before. `name` as tls_session_new's host. After -EPROTO or
 * -ETIMEDOUT the reason is in l->error, without `where`. */
int link_secure(struct link *l, const char *name, uint64_t deadline_ns);
int link_send(struct link *l, const char *bytes, size_t size, uint64_t deadline_ns);
ssize_t link_receive(struct link *l, char *bytes, size_t size, uint64_t deadline_ns);
/* Sleeps until the deadline. Returns 0 or -ECANCELED. */
int link_pause(struct link *l, uint64_t deadline_ns);
void link_close(struct link *l);

/* Sends a command of `count` words and returns its answer (which may be an error reply), to be freed with
 * freeReplyObject. NULL: no answer, link_error says why, and the link can't be used any more. */
redisReply *link_ask(struct link *l, int count, const char *const *words);
/* The next answer to commands sent by link_send. `name` describes them in a sentence. */
redisReply *link_answer(struct link *l, const char *name);
/* Whether more bytes arrived than expected. */
bool link_has_more(const struct link *l);
/* "127.0.0.1:6379 did not answer PING within 5 s. ..." */
const char *link_error(const struct link *l);

/* For a link from server_enter (connect.h): closes and frees it. Accepts NULL. */
void link_free(struct link *l);
/* The same, but leaves the connection open and returns its descriptor, non-blocking. tls_claim returns its
 * TLS session. Negative errno. */
int link_release(struct link *l);

#ifdef __cplusplus
}
#endif
#endif

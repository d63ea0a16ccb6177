/* SPDX-License-Identifier: MIT */
/* A connection off the hot path, for questions of our own: the set-up before a load, what a cluster looks
 * like, the observer. A non-blocking socket and poll() for whatever has to be waited for, so that every wait
 * ends at its deadline, or when it is told to stop. hiredis parses answers and writes commands, but does
 * not get the socket: its own calls can't be interrupted and time each read() by itself, so that a server
 * that sends a byte now and then holds them for ever, and they keep a reply of any length. */
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

/* How long an answer to a set-up command is waited for, and how long it may be; INFO has some 10 KB. */
#define LINK_ANSWER_NS 5000000000u
enum { LINK_ANSWER_BYTES = 1 << 20 };

struct link {
	int fd;			 /* -1: closed */
	int stop_fd;		 /* readable: end every wait. -1: nobody will */
	struct tls_session *tls; /* NULL: plain */
	uint64_t patience_ns;	 /* for an answer; 0: LINK_ANSWER_NS */
	size_t answer_bytes;	 /* how long one may be; 0: LINK_ANSWER_BYTES */
	redisReader *reader;	 /* of link_ask; made when first needed */
	int failed;		 /* why link_ask had no answer: a negative errno */
	char where[160];	 /* what sentences about it begin with */
	char error[480];
};

/* A link that is closed. */
#define LINK_CLOSED ((struct link){.fd = -1, .stop_fd = -1})

/* All of these: 0 (link_receive: bytes) or a negative errno; -ECANCELED for the stop, -ETIMEDOUT for the
 * deadline (CLOCK_MONOTONIC), -ECONNRESET for a connection that the other side has closed, -EPROTO when TLS
 * failed. */
int link_open(struct link *l, const struct server_socket *to, uint32_t number, uint64_t deadline_ns);
/* Has the TLS handshake, with tls_begin before; `name` as tls_session_new's host. -EPROTO, or -ETIMEDOUT: the
 * reason is in l->error, without `where` in front. */
int link_secure(struct link *l, const char *name, uint64_t deadline_ns);
int link_send(struct link *l, const char *bytes, size_t size, uint64_t deadline_ns);
ssize_t link_receive(struct link *l, char *bytes, size_t size, uint64_t deadline_ns);
/* Sleeps until the deadline: 0, or -ECANCELED. */
int link_pause(struct link *l, uint64_t deadline_ns);
void link_close(struct link *l);

/* Sends a command of `count` words and returns its answer (an error reply is one), for freeReplyObject; NULL:
 * there was none, and link_error says why. After that the link is of no further use. */
redisReply *link_ask(struct link *l, int count, const char *const *words);
/* The next answer, to commands that link_send sent; `name` is what they are called in a sentence. */
redisReply *link_answer(struct link *l, const char *name);
/* Whether more came than was asked for. */
bool link_has_more(const struct link *l);
/* "127.0.0.1:6379 did not answer PING within 5 s; ..." */
const char *link_error(const struct link *l);

/* For a link from server_enter (connect.h): closes and frees it. NULL is nothing to free. */
void link_free(struct link *l);
/* The same, but leaves the connection open: the descriptor, non-blocking. A TLS session is there for
 * tls_claim. Negative errno. */
int link_release(struct link *l);

#ifdef __cplusplus
}
#endif
#endif

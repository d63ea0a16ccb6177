/* SPDX-License-Identifier: MIT */
/* TLS over a socket, with OpenSSL: sessions that read and write as read(2) and write(2) do, so that whoever
 * uses one has the same code for plain connections. The server's certificate is verified, chain and name,
 * unless the user said --insecure. There is one set of TLS options to a process, so its context is the
 * process's. Sessions are not resumed: every handshake is a whole one, as a client's first is. */
#ifndef FORKTAIL_LOADGEN_TLS_H
#define FORKTAIL_LOADGEN_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tls_options {
	bool on, insecure;
	const char *cacert, *cacertdir; /* NULL: the system's CAs */
	const char *cert, *key;		/* our own; NULL: none */
	const char *sni;		/* the name to ask for and to verify; NULL: the host's */
};

struct tls_session;

/* Reads keys and certificates; the first call does it, others are free. 0, or -1 and a sentence. */
int tls_begin(const struct tls_options *o, char *error, size_t size);
/* On a connected descriptor, which stays the caller's. `host`: the server's name or address, "" for a Unix
 * socket's. NULL: out of memory. */
struct tls_session *tls_session_new(const char *host, int fd);
/* Says goodbye, if the descriptor takes it at once; to be called before that is closed. NULL is nothing. */
void tls_session_free(struct tls_session *s);

/* 0: done. -EAGAIN: to be called again when the descriptor is readable, or writable if tls_wants_write.
 * -EPROTO, -ECONNRESET: failed, tls_why says why. */
int tls_handshake(struct tls_session *s);
bool tls_wants_write(const struct tls_session *s);
/* "has a certificate that expired on Jan  1 2026", about a handshake or a read or write that failed. */
const char *tls_why(const struct tls_session *s);

/* As read(2): 0 at the end of stream, -1 and errno; EPROTO: tls_why says why. A read of a non-blocking
 * descriptor that returns less than asked for has emptied it, unless tls_has_unread. Blocking, it returns
 * what one look at the descriptor brought. */
ssize_t tls_read(struct tls_session *s, void *to, size_t size);
/* As write(2). What it did not take has to come again with the same bytes. */
ssize_t tls_write(struct tls_session *s, const void *from, size_t size);
/* There is something new on the descriptor; `closed`: and its end, so that it must be read to that. */
void tls_wake(struct tls_session *s, bool closed);
/* From now to the next tls_wake, reads only bring what was taken off the descriptor before. */
void tls_hold(struct tls_session *s);
/* The next read brings something, perhaps an error, without a look at the descriptor. */
bool tls_has_unread(const struct tls_session *s);
/* Each tls_read looks at the descriptor once, and waits there if that waits. */
void tls_set_blocking(struct tls_session *s, bool blocking);

/* Sessions on their way from set-up to a load thread, by descriptor. tls_claim: NULL if there is none. */
int tls_hand_over(int fd, struct tls_session *s);
struct tls_session *tls_claim(int fd);
/* Closes a descriptor that nobody took over, with its session if there is one. */
void tls_close(int fd);

#ifdef __cplusplus
}
#endif
#endif

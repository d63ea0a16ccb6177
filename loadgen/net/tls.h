/* SPDX-License-Identifier: MIT */
/* TLS over a socket, with OpenSSL: sessions read and write like read(2) and write(2), so that callers use the
 * same code for plain connections. The server's certificate is verified, chain and name, unless --insecure is
 * given. A process has one set of TLS options, so the context is global. Sessions are not resumed: every
 * handshake is complete, like a client's first one. */
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
	const char *cert, *key;		/* client certificate; NULL: none */
	const char *sni;		/* the name to request and verify; NULL: the host's */
};

struct tls_session;

/* Reads keys and certificates on the first call. Returns 0, or -1 and a sentence. */
int tls_begin(const struct tls_options *o, char *error, size_t size);
/* On a connected descriptor, which the caller still owns. `host`: the server's name or address, "" for a Unix
 * socket. NULL: out of memory. */
struct tls_session *tls_session_new(const char *host, int fd);
/* Sends a close notification if the descriptor accepts it at once. Call it before closing the descriptor.
 * Accepts NULL. */
void tls_session_free(struct tls_session *s);

/* 0: done. -EAGAIN: call again when the descriptor is readable, or writable if tls_wants_write.
 * -EPROTO, -ECONNRESET: failed, tls_why says why. */
int tls_handshake(struct tls_session *s);
bool tls_wants_write(const struct tls_session *s);
/* "has a certificate that expired on Jan 1 2026", for a handshake, read or write that failed. */
const char *tls_why(const struct tls_session *s);

/* Like read(2): 0 at the end of stream, -1 and errno; EPROTO: tls_why says why. A read of a non-blocking
 * descriptor that returns less than requested has emptied it, unless tls_has_unread. In blocking mode it
 * returns what one read of the descriptor brought. */
ssize_t tls_read(struct tls_session *s, void *to, size_t size);
/* Like write(2). Bytes that it did not accept must be passed again unchanged. */
ssize_t tls_write(struct tls_session *s, const void *from, size_t size);
/* The descriptor has new data; `closed`: and an end of stream, so it must be read up to that. */
void tls_wake(struct tls_session *s, bool closed);
/* From now to the next tls_wake, reads return only data already read from the descriptor. */
void tls_hold(struct tls_session *s);
/* The next read returns data or an error without reading the descriptor. */
bool tls_has_unread(const struct tls_session *s);
/* Each tls_read reads the descriptor once, and blocks if the descriptor does. */
void tls_set_blocking(struct tls_session *s, bool blocking);

/* Sessions passed from set-up to a load thread, by descriptor. tls_claim: NULL without one. */
int tls_hand_over(int fd, struct tls_session *s);
struct tls_session *tls_claim(int fd);
/* Closes a descriptor that was not taken over, with its session if there is one. */
void tls_close(int fd);

#ifdef __cplusplus
}
#endif
#endif

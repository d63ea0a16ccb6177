/* SPDX-License-Identifier: MIT */
/* A session as its two files see it: tls_session.c reads and writes, tls_context.c makes it for a host and
 * puts failures into words. For everybody else it stays closed. */
#ifndef FORKTAIL_LOADGEN_TLS_PARTS_H
#define FORKTAIL_LOADGEN_TLS_PARTS_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "tls.h"

struct tls_session {
	SSL *ssl;
	int fd;
	int error;	  /* errno of the last call on the socket that failed */
	bool drained;	  /* the socket was emptied; not to be read until tls_wake */
	bool closed;	  /* it ends somewhere: it is read to there */
	bool blocking;	  /* a read may wait, once */
	bool ended;	  /* it was read to there */
	bool failed;	  /* no goodbye */
	bool wants_write; /* the call that got nowhere waits for room */
	bool unread;
	char name[256]; /* what the certificate has to be for */
	char why[400];
};

/* A session of the context for this host; `name` is what will be verified, "" with --insecure. */
SSL *tls_context_session(const char *host, char *name, size_t size);
/* Puts into s->why what the failure that OpenSSL calls `kind` means. */
void tls_explain(struct tls_session *s, int kind);

#endif

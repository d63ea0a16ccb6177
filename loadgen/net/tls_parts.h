/* SPDX-License-Identifier: MIT */
/* A session as its two files see it: tls_session.c reads and writes, tls_context.c creates it for a host and
 * explains failures. Opaque to all other code. */
#ifndef FORKTAIL_LOADGEN_TLS_PARTS_H
#define FORKTAIL_LOADGEN_TLS_PARTS_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "tls.h"

struct tls_session {
	SSL *ssl;
	int fd;
	int error;	  /* errno of the last failed call on the socket */
	bool drained;	  /* the socket was emptied; not read again until tls_wake */
	bool closed;	  /* an end of stream is known: it is read up to there */
	bool blocking;	  /* one read may block */
	bool ended;	  /* it was read up to the end */
	bool failed;	  /* send no close notification */
	bool wants_write; /* the call that made no progress waits for writing */
	bool unread;
	char name[256]; /* the name that the certificate must have */
	char why[400];
};

/* A session of the context for this host. `name` will be verified; "" with --insecure. */
SSL *tls_context_session(const char *host, char *name, size_t size);
/* Writes the explanation of OpenSSL's failure `kind` to s->why. */
void tls_explain(struct tls_session *s, int kind);

#endif

/* SPDX-License-Identifier: MIT */
/* The observer of a load run: once per second it asks the server for its own statistics over a separate
 * connection and writes them to the recording: every number as a series, and events (slow log, latency
 * monitor, forks, a changed role) as notes. docs/reference/recording-format.md lists them. It never delays
 * the load: it has a separate thread, every wait has a time-out and ends at a stop, and a missing server is
 * retried after growing pauses. What the server refuses is noted once and not asked again. */
#ifndef FORKTAIL_LOADGEN_OBSERVER_H
#define FORKTAIL_LOADGEN_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct observer;

struct observer_server {
	const char *host;   /* name or address; ignored if there is a socket */
	const char *socket; /* path of a Unix socket, or NULL */
	uint32_t port;
	const char *user,
	    *password; /* for Redis; NULL: none. Sent only to a server that answers PING like Redis */
	bool memcached;
	bool hide_keys;	      /* of slow commands only the name is recorded, since a word may be a key */
	const char *tls_name; /* as tls_session_new's host, with tls_begin before; NULL: no TLS */
};

/* Starts the thread. The host's name is resolved here, so that a resolver can't delay the end. No other code
 * may write series to `w`. A server that does not answer is not an error: it is noted in the recording.
 * Returns 0 or a negative errno: -EHOSTUNREACH for a name without an address, -ENAMETOOLONG for a path. */
int observer_start(struct observer **out, const struct observer_server *s, struct ft_writer *w);

/* Ends the thread, whatever it waits for, and frees. Call it before the recording is closed. Accepts NULL. */
void observer_stop(struct observer *o);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* The observer of a load run: once a second it asks the server for its own word, over a connection of its
 * own, and writes it into the recording beside the requests: every number the server tells as a series, and
 * what it says happened (slow log, latency monitor, forks, a changed role) as notes. docs/reference/recording-format.md
 * lists them.
 *
 * It must never hold up the load: a thread of its own, every wait with an end and ended by a stop, a server
 * that is gone asked again after growing pauses. What the server refuses is noted once and not asked again.
 */
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
	const char *host;   /* name or address; not looked at if there is a socket */
	const char *socket; /* path of a Unix socket, or NULL */
	uint32_t port;
	const char *user, *password; /* of Redis; NULL: none. Sent only to what answers PING like a Redis */
	bool memcached;
	const char *tls_name; /* as tls_session_new's host, with tls_begin before; NULL: no TLS */
};

/* Starts the thread. The host's name is resolved here, so that no resolver can delay the end. Nobody else
 * may write series into `w`. A server that does not answer is no error: that is noted in the recording. 0 or
 * a negative errno: -EHOSTUNREACH for a name without an address, -ENAMETOOLONG for a path. */
int observer_start(struct observer **out, const struct observer_server *s, struct ft_writer *w);

/* Ends the thread, whatever it waits for, and frees. To be called before the recording is closed. NULL is
 * nothing to stop. */
void observer_stop(struct observer *o);

#ifdef __cplusplus
}
#endif
#endif

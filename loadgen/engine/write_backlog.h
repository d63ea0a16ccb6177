/* SPDX-License-Identifier: MIT */
/* What the kernel did not accept at once, to be written later. This is rare, so it is separate from the
 * connection. An empty backlog means waiting until a descriptor is writable (a connect(), a TLS
 * handshake). */
#ifndef FORKTAIL_LOADGEN_WRITE_BACKLOG_H
#define FORKTAIL_LOADGEN_WRITE_BACKLOG_H

#include "load_thread.h"

/* Stores `length` bytes (0: none) for a connection without a backlog, and waits for it to become writable.
 * False: out of memory. */
bool write_backlog_keep(struct connection *c, const char *bytes, size_t length);
/* Sets whether to wait until it is writable. */
void write_backlog_watch(struct connection *c, bool watch);
/* Writes as much as the kernel accepts. 1: all of it is written; 0: not yet; -1: as a write that failed (see
 * transport_why). */
int write_backlog_write(struct connection *c);
/* Drops the backlog, if any. */
void write_backlog_drop(struct connection *c);

#endif

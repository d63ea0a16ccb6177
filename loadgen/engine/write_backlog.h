/* SPDX-License-Identifier: MIT */
/* What the kernel did not take at once, to be written when it can. Rare, so it is apart from the connection;
 * an empty rest stands for waiting until a descriptor is writable (a connect(), a TLS handshake). */
#ifndef FORKTAIL_LOADGEN_WRITE_BACKLOG_H
#define FORKTAIL_LOADGEN_WRITE_BACKLOG_H

#include "load_thread.h"

/* Keeps `length` bytes (0: none) for a connection that keeps none yet, and waits for it to become writable.
 * False: out of memory. */
bool write_backlog_keep(struct connection *c, const char *bytes, size_t length);
/* Whether to be woken when it is writable. */
void write_backlog_watch(struct connection *c, bool watch);
/* Writes of it what the kernel takes. 1: all of it is written; 0: not yet; -1: as a write that failed (see
 * transport_why). */
int write_backlog_write(struct connection *c);
/* Forgets it, if there is any. */
void write_backlog_drop(struct connection *c);

#endif

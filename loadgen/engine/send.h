/* SPDX-License-Identifier: MIT */
/* Requests on their way out: taken up one by one, as their load model has time or room for them, and
 * written together, so that a batch of a connection costs one write(). */
#ifndef FORKTAIL_LOADGEN_SEND_H
#define FORKTAIL_LOADGEN_SEND_H

#include "load_thread.h"

/* Adds one request to those in flight; it's due at intended_ns (0: when it is sent). */
void take_up(struct connection *c, uint64_t intended_ns);
/* Writes the requests that were taken up since the last call; behind what the kernel did not take yet, once
 * it has. now_ns 0: not known. */
void send_batch(struct connection *c, uint64_t now_ns);
/* Has the next step of an operation sent with the next batch, on the connection of the one before: of models
 * for one server the `step`. */
void send_step(struct connection *c, const struct pending_request *p);

#endif

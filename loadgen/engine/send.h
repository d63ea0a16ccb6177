/* SPDX-License-Identifier: MIT */
/* Sending requests: the load model takes them one by one as it has time or space, and a connection's batch is
 * written with one write(). */
#ifndef FORKTAIL_LOADGEN_SEND_H
#define FORKTAIL_LOADGEN_SEND_H

#include "load_thread.h"

/* Adds one request to those in flight. It is due at intended_ns (0: when it is sent). */
void take_up(struct connection *c, uint64_t intended_ns);
/* Writes the requests that were taken since the last call, after any bytes that the kernel has not accepted
 * yet. now_ns 0: unknown. */
void send_batch(struct connection *c, uint64_t now_ns);
/* Sends the next step of an operation with the next batch, on the connection of the previous one: `step` of
 * models for one server. */
void send_step(struct connection *c, const struct pending_request *p);

#endif

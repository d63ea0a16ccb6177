/* SPDX-License-Identifier: MIT */
/* What came from a server, cut into answers. Whoever read it hands over all that one read() brought, with
 * or without an event loop. */
#ifndef FORKTAIL_LOADGEN_ANSWERS_H
#define FORKTAIL_LOADGEN_ANSWERS_H

#include "load_thread.h"

/* Takes the answers in the `size` bytes that lie in the thread's read buffer since now_ns. False: the
 * connection is gone. */
bool take_answers(struct connection *c, size_t size, uint64_t now_ns);

#endif

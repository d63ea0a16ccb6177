/* SPDX-License-Identifier: MIT */
/* What came from a server, cut into answers. Whoever read it hands over all that one read() brought, with
 * or without an event loop. */
#ifndef FORKTAIL_LOADGEN_ANSWERS_H
#define FORKTAIL_LOADGEN_ANSWERS_H

#include "thread.h"

/* Takes the answers in at..end. False: the connection is gone. */
bool take_answers(struct connection *c, const char *at, const char *end, uint64_t now_ns);

#endif

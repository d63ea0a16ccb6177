/* SPDX-License-Identifier: MIT */
/* Cuts received bytes into answers. The reader passes on everything that one read() returned, with or without
 * an event loop. */
#ifndef FORKTAIL_LOADGEN_ANSWERS_H
#define FORKTAIL_LOADGEN_ANSWERS_H

#include "load_thread.h"

/* Handles the answers in the `size` bytes in the thread's read buffer, received at now_ns. False: the
 * connection is gone. */
bool take_answers(struct connection *c, size_t size, uint64_t now_ns);

#endif

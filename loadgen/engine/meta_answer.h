/* SPDX-License-Identifier: MIT */
/* memcached's meta commands, where not every request has an answer. */
#ifndef FORKTAIL_LOADGEN_META_ANSWER_H
#define FORKTAIL_LOADGEN_META_ANSWER_H

#include "load_thread.h"

enum meta_match { META_ANSWERS_OLDEST, META_ANSWERS_NONE, META_LOST };

/* A meta reply is complete: sees whose it is, and ends the reads before it that have silently missed.
 * META_LOST: it can't be, and the connection is gone. */
enum meta_match meta_answer(struct connection *c, uint64_t now_ns);
/* Of a batch of `count` requests that lie up to byte `at` of the request buffer: adds what makes the server
 * show that it is through with quiet reads. Returns the byte behind it, 0 when memory is short. */
size_t meta_end_batch(struct connection *c, uint32_t count, size_t at);

#endif

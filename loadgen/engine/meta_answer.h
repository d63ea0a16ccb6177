/* SPDX-License-Identifier: MIT */
/* memcached's meta commands, where some requests get no answer. */
#ifndef FORKTAIL_LOADGEN_META_ANSWER_H
#define FORKTAIL_LOADGEN_META_ANSWER_H

#include "load_thread.h"

enum meta_match { META_ANSWERS_OLDEST, META_ANSWERS_NONE, META_LOST };

/* A meta reply is complete: finds its request, and ends reads before it that missed silently. META_LOST: it
 * belongs to none, and the connection is gone. */
enum meta_match meta_answer(struct connection *c, uint64_t now_ns);
/* For a batch of `count` requests that ends at byte `at` of the request buffer: appends the command that
 * shows when the server has finished the quiet reads. Returns the offset after it, or 0 without memory. */
size_t meta_end_batch(struct connection *c, uint32_t count, size_t at);

#endif

/* SPDX-License-Identifier: MIT */
/* What is asked of the server: operations, their share, keys and values, and the bytes of a request.
 *
 * Requests are made once, as templates, and only patched while the load runs: the key is 12 digits of
 * fixed width, the value is one text for the whole run. A thread's request buffer remembers which template
 * lies at which place, so a run of one operation copies nothing but digits.
 */
#ifndef FORKTAIL_LOADGEN_WORKLOAD_H
#define FORKTAIL_LOADGEN_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "random.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operations; the number is the request log's op, the name its manifest's "ops" entry. */
enum operation { OPERATION_GET = 0, OPERATION_SET = 1, OPERATIONS };
extern const char *const operation_names[OPERATIONS];

/* "key:" and this many digits, as redis-benchmark names keys. */
enum { KEY_DIGITS = 12 };
#define KEY_SPACE_MAX 1000000000000u

struct request_template {
	char *bytes;
	uint32_t length, key_at;
	char nil_kind; /* kind of reply that means a miss; 0: none does */
	char kind;     /* kind of reply that means success */
};

/* What all threads share; read-only while they run. */
struct workload {
	struct request_template templates[OPERATIONS];
	bool used[OPERATIONS];
	enum operation only; /* when one operation is used */
	bool mixed;
	uint64_t set_share; /* of 2^64: a draw below it is a SET */
	uint64_t keys;	    /* key space, at least 1 */
	bool sequential;    /* keys in order, each once (a fill) */
	uint32_t longest;   /* template, in bytes */
};

/* A thread's place in the workload. */
struct chooser {
	struct random_stream keys, operations;
	uint64_t next_key; /* sequential */
};

struct request_buffer {
	char *bytes;
	struct slot {
		uint32_t at;
		uint8_t operation; /* OPERATIONS: nothing yet */
	} * slots;
};

/* used[], mixed, set_share, keys and sequential are set by the caller. -ENOMEM on failure. */
int workload_prepare(struct workload *w, uint32_t value_bytes, uint64_t seed);
void workload_free(struct workload *w);

int request_buffer_init(struct request_buffer *b, const struct workload *w, uint32_t pipeline);
void request_buffer_free(struct request_buffer *b);

static inline enum operation choose_operation(const struct workload *w, struct chooser *c)
{
	if (!w->mixed)
		return w->only;
	return random_next(&c->operations) < w->set_share ? OPERATION_SET : OPERATION_GET;
}

static inline uint64_t choose_key(const struct workload *w, struct chooser *c)
{
	if (w->sequential)
		return c->next_key++;
	return w->keys == 1 ? 0 : random_below(&c->keys, w->keys);
}

/* Puts the request number `slot` of a batch at byte `at`; returns the byte after it. Slots are filled in
 * order, from slot 0 at byte 0. */
uint32_t request_put(struct request_buffer *b, const struct workload *w, uint32_t slot, uint32_t at,
		     enum operation operation, uint64_t key);

#ifdef __cplusplus
}
#endif
#endif

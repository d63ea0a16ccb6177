/* SPDX-License-Identifier: MIT */
/* A completely gathered reply, for the few requests whose answer matters beyond its end: values that are
 * checked (--verify), the keys that a YCSB scan reads next, the number of a WAIT. It is stored up to a limit,
 * separate from the scanner, which so need not store any byte on the hot path. */
#ifndef FORKTAIL_LOADGEN_REPLY_BUFFER_H
#define FORKTAIL_LOADGEN_REPLY_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/command/bytes.h"
#include "loadgen/command/values.h"
#include "loadgen/command/ycsb_names.h"
#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A longer reply is not one of our values, and is not stored. */
#define REPLY_BUFFER_BYTES_MAX ((size_t)VALUE_BYTES_MAX + 4096)

/* Where a connection's scan by an operation continues. */
struct scan_cursor {
	char text[24];	 /* a 64-bit number */
	uint32_t length; /* 0: a new scan begins */
	uint64_t key;	 /* of the scan (HSCAN and others) */
};

struct reply_buffer {
	struct scan_cursor *cursors; /* by operation; NULL: no operation has a cursor */
	struct bytes reply;
	bool overflow;
	uint32_t captured; /* keys of a scan's answer: captured_at[0 .. captured-1] into reply */
	uint32_t captured_at[YCSB_SCAN_MAX], captured_length[YCSB_SCAN_MAX];
};

/* Whether a reply to this step of an operation is gathered. */
static inline bool reply_buffer_needed(const struct workload *w, const struct operation *o, uint32_t step)
{
	return (w->verify && o->verifies) || ((o->scan || o->cursor) && step == 0) ||
	       (step < STEPS_MAX && o->steps[step].least);
}

/* NULL: no memory. */
struct reply_buffer *reply_buffer_new(const struct workload *w);
void reply_buffer_free(struct reply_buffer *g);
void reply_buffer_add(struct reply_buffer *g, const char *from, const char *to);
/* Starts with the next reply. */
void reply_buffer_reset(struct reply_buffer *g);

/* The offset of the first byte of the value in the reply that differs from the key's value, -1 if all are
 * equal, -2 if the reply is truncated or has another shape. A wrong length counts as a wrong byte at the
 * shorter one. */
int64_t reply_buffer_check_value(const struct reply_buffer *g, const struct workload *w, uint64_t key);
/* The number of an integer reply. */
uint64_t reply_buffer_number(const struct reply_buffer *g);
/* Stores the cursor of a scan's answer for the operation's next request, whose key remains `key`. */
void reply_buffer_take_cursor(struct reply_buffer *g, uint32_t operation, uint64_t key);
/* Extracts the keys from a Redis array of strings. */
void reply_buffer_take_keys(struct reply_buffer *g);

#ifdef __cplusplus
}
#endif
#endif

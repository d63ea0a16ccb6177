/* SPDX-License-Identifier: MIT */
/* A reply gathered whole, for the few requests whose answer matters beyond its end: values that are checked
 * (--verify), the keys that a YCSB scan goes on to read, the number of a WAIT. It is kept up to a bound,
 * beside the scanner, which so need not keep any byte on the hot path. */
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

/* More of a reply than this is no value of ours, and is not kept. */
#define REPLY_BUFFER_BYTES_MAX ((size_t)VALUE_BYTES_MAX + 4096)

struct reply_buffer {
	struct bytes reply;
	bool overflow;
	uint32_t captured; /* keys of a scan's answer: captured_at[0 .. captured-1] into reply */
	uint32_t captured_at[YCSB_SCAN_MAX], captured_length[YCSB_SCAN_MAX];
};

/* Whether a reply to this step of an operation is to be gathered. */
static inline bool reply_buffer_needed(const struct workload *w, const struct operation *o, uint32_t step)
{
	return (w->verify && o->verifies) || (o->scan && step == 0) ||
	       (step < STEPS_MAX && o->steps[step].least);
}

struct reply_buffer *reply_buffer_new(void);
void reply_buffer_free(struct reply_buffer *g);
void reply_buffer_add(struct reply_buffer *g, const char *from, const char *to);
/* Begins with the next reply. */
void reply_buffer_reset(struct reply_buffer *g);

/* The offset of the first byte of the value in the reply that isn't what the key's value holds, -1 when all
 * are, -2 when the reply is cut or of another shape. A wrong length shows as a wrong byte at the shorter one.
 */
int64_t reply_buffer_check_value(const struct reply_buffer *g, const struct workload *w, uint64_t key);
/* The number of an integer reply. */
uint64_t reply_buffer_number(const struct reply_buffer *g);
/* Takes the keys out of a Redis array of strings. */
void reply_buffer_take_keys(struct reply_buffer *g);

#ifdef __cplusplus
}
#endif
#endif

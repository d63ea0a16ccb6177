/* SPDX-License-Identifier: MIT */
/* Looking at the bytes of a reply, for the few requests whose answer matters beyond its end: values that are
 * checked (--verify), and the keys that a YCSB scan goes on to read. The reply is gathered whole, up to a
 * bound, so the hot path's scanner stays as it is. */
#ifndef FORKTAIL_LOADGEN_INSPECTION_H
#define FORKTAIL_LOADGEN_INSPECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* More of a reply than this is no value of ours, and is not kept. */
#define INSPECTION_BYTES_MAX ((size_t)VALUE_BYTES_MAX + 4096)

struct inspection {
	struct bytes reply;
	bool overflow;
	uint32_t captured; /* keys of a scan's answer: captured_at[0 .. captured-1] into reply */
	uint32_t captured_at[YCSB_SCAN_MAX], captured_length[YCSB_SCAN_MAX];
};

/* Whether a reply to this step of an operation is to be gathered. */
static inline bool inspection_wanted(const struct workload *w, const struct operation *o, uint32_t step)
{
	return (w->verify && o->verifies) || (o->scan && step == 0) ||
	       (step < STEPS_MAX && o->steps[step].least);
}

struct inspection *inspection_new(void);
void inspection_free(struct inspection *i);
void inspection_add(struct inspection *i, const char *from, const char *to);
/* Begins with the next reply. */
void inspection_reset(struct inspection *i);

/* The offset of the first byte of the value in the reply that isn't what the key's value holds, -1 when all
 * are, -2 when the reply is cut or of another shape. A wrong length shows as a wrong byte at the shorter one.
 */
int64_t inspection_check(const struct inspection *i, const struct workload *w, uint64_t key);
/* The number of an integer reply. */
uint64_t inspection_number(const struct inspection *i);
/* Takes the keys out of a Redis array of strings. */
void inspection_capture(struct inspection *i);

#ifdef __cplusplus
}
#endif
#endif

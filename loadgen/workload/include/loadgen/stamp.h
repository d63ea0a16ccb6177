/* SPDX-License-Identifier: MIT */
/* The stamp in a message tells its receiver when it was due and when it was sent: a run's id, the message's
 * number in it, and its intended and start times (CLOCK_MONOTONIC, so sender and receiver must be on one
 * host: they are one program). Text of fixed width, readable in redis-cli, without characters that need
 * escaping.
 *
 *   forktail 4f1c0a93 000000000042 0000012345678901234 0000012345678912345 xxxx... */
#ifndef FORKTAIL_LOADGEN_STAMP_H
#define FORKTAIL_LOADGEN_STAMP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STAMP_BYTES = 9 + 8 + 1 + 12 + 1 + 19 + 1 + 19 + 1 };

/* Of a run; threads take numbers from it. */
struct stamps {
	uint32_t run;
	atomic_uint_fast64_t next;
};

struct stamp {
	uint64_t number, intended_ns, start_ns;
};

/* Writes a stamp with the run's next number and the current time as its start, and pads it to `length` (at
 * least STAMP_BYTES). intended_ns 0: due when it is sent. */
void stamp_write(struct stamps *s, uint64_t intended_ns, char *to, size_t length);
/* False: no stamp, or a stamp of another run. */
bool stamp_read(const char *at, size_t length, uint32_t run, struct stamp *s);
#endif

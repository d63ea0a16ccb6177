/* SPDX-License-Identifier: MIT */
/* When a helper that ended is started again: the first time at once, then after 1, 2, 4 ... 60 s. After five
 * quiet minutes the next wait is 0 s again. */
#ifndef FORKTAIL_LOADER_RESTARTS_H
#define FORKTAIL_LOADER_RESTARTS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero: it has not ended yet. */
struct restarts {
	uint64_t ended_ns, due_ns;
	unsigned wait_s; /* after the next end */
};

/* The helper ended at `now_ns`. */
void restarts_ended(struct restarts *r, uint64_t now_ns);
/* It could not be started: again after 5 s. */
void restarts_failed(struct restarts *r, uint64_t now_ns);
/* Whether it is time to start it. */
bool restarts_due(const struct restarts *r, uint64_t now_ns);

#ifdef __cplusplus
}
#endif

#endif

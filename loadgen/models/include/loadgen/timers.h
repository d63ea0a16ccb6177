/* SPDX-License-Identifier: MIT */
/* Later actions of a load thread: the end of think times, reconnects, checks for time-outs. A binary heap
 * over one timerfd. None of this is on the path of a request that does not need it. */
#ifndef FORKTAIL_LOADGEN_TIMERS_H
#define FORKTAIL_LOADGEN_TIMERS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct timer {
	uint64_t when_ns;
	void (*act)(void *who, uint64_t now_ns);
	void *who;
};

struct timers {
	struct timer *heap;
	uint32_t count;
	size_t room;
	uint64_t armed_ns; /* the time set in `fd`; 0: none */
	int fd;
};

/* Initial space for `room` timers (at least 1); it grows. Negative errno. */
int timers_init(struct timers *t, uint32_t room);
void timers_free(struct timers *t);
/* A timer can't be cancelled: `act` must check whether there is still something to do. */
void timers_add(struct timers *t, uint64_t when_ns, void (*act)(void *, uint64_t), void *who);
/* Runs all timers that are due. */
void timers_run(struct timers *t, uint64_t now_ns);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* What a load thread is to do later: think times over, connections to open again, time-outs to look for. A
 * binary heap over one timerfd; nothing here is on the path of a request that needs none of it. */
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
	uint32_t count, room;
	uint64_t armed_ns; /* what `fd` is set to; 0: nothing */
	int fd;
};

/* Room for `room` timers (1 or more) at first; it grows. Negative errno. */
int timers_init(struct timers *t, uint32_t room);
void timers_free(struct timers *t);
/* A timer can't be taken back: `act` has to see for itself whether there is still something to do. */
void timers_add(struct timers *t, uint64_t when_ns, void (*act)(void *, uint64_t), void *who);
/* Acts on all that are due. */
void timers_run(struct timers *t, uint64_t now_ns);

#ifdef __cplusplus
}
#endif
#endif

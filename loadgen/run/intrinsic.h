/* SPDX-License-Identifier: MIT */
/* How late this host itself wakes a thread: a thread that does nothing but sleep until one instant after the
 * other. What it sees (hypervisor, power saving, interrupts, other processes) is in every latency measured
 * here, whatever the server does; no server on this host can be better.
 */
#ifndef FORKTAIL_LOADGEN_INTRINSIC_H
#define FORKTAIL_LOADGEN_INTRINSIC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct intrinsic_options {
	uint64_t period_ns;   /* 0: 1 ms; else 1 us to 1 s, so that a stop is seen within a second */
	uint64_t duration_ns; /* 0: until *stop; else at least a period */
	int cpu;	      /* to stay on; negative: wherever the scheduler puts it */
	const volatile int
	    *stop; /* ends it when not 0; set atomically, or by a signal handler; NULL: there is none */
};

struct intrinsic_result {
	uint64_t start_ns; /* instants are start_ns + k * period_ns for k = 1, 2 ..., CLOCK_MONOTONIC */
	uint64_t instants; /* calls of `woken` */
	uint64_t missed;   /* of these, instants that had passed before a wake-up could be asked for */
};

/* Called for every instant, in order; woken_ns is never below intended_ns. An instant that passed while the
 * thread was woken late for the one before it (or was in here) has the lateness a request due then would have
 * had: up to the wake-up that came. Time spent in here is the measured thread's own: a few hundred
 * nanoseconds are fine, a write to disk is not. */
typedef void (*intrinsic_woken)(void *arg, uint64_t intended_ns, uint64_t woken_ns);

/* Runs on the calling thread, whose CPU affinity and timer slack are set for it and restored. Without a stop,
 * exactly duration_ns / period_ns calls. 0 or a negative errno: -EINVAL for options out of range or neither
 * duration nor stop, sched_setaffinity's for a CPU that is not there or not allowed. */
int intrinsic_run(const struct intrinsic_options *options, intrinsic_woken woken, void *arg,
		  struct intrinsic_result *result);

#ifdef __cplusplus
}
#endif
#endif

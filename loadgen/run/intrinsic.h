/* SPDX-License-Identifier: MIT */
/* How late this host wakes a thread: a thread only sleeps until one instant after the other. Its delays
 * (hypervisor, power saving, interrupts, other processes) are part of every latency measured here, whatever
 * the server does. No server on this host can be better. */
#ifndef FORKTAIL_LOADGEN_RUN_INTRINSIC_H
#define FORKTAIL_LOADGEN_RUN_INTRINSIC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct intrinsic_options {
	uint64_t period_ns;   /* 0: 1 ms; otherwise 1 us to 1 s, so that a stop is noticed within a second */
	uint64_t duration_ns; /* 0: until *stop; otherwise at least a period */
	int cpu;	      /* CPU to use; negative: chosen by the scheduler */
	const volatile int *stop; /* ends it when not 0; set atomically, or by a signal handler; NULL: none */
};

struct intrinsic_result {
	uint64_t start_ns; /* instants are start_ns + k * period_ns for k = 1, 2 ..., CLOCK_MONOTONIC */
	uint64_t instants; /* calls of `woken` */
	uint64_t missed;   /* instants that had passed before a wake-up could be requested */
};

/* Called for every instant, in order; woken_ns is never below intended_ns. An instant that passed during a
 * late wake-up for the previous one (or in this callback) gets the delay that a request due then would have
 * had: until the actual wake-up. Time spent in this callback belongs to the measured thread: a few hundred
 * nanoseconds are fine, a write to disk is not. */
typedef void (*intrinsic_woken)(void *arg, uint64_t intended_ns, uint64_t woken_ns);

/* Runs on the calling thread, whose CPU affinity and timer slack are set and restored. Without a stop, makes
 * exactly duration_ns / period_ns calls. Returns 0 or a negative errno: -EINVAL for options out of range or
 * neither duration nor stop, sched_setaffinity's for a CPU that does not exist or is not allowed. */
int intrinsic_run(const struct intrinsic_options *options, intrinsic_woken woken, void *arg,
		  struct intrinsic_result *result);

#ifdef __cplusplus
}
#endif
#endif

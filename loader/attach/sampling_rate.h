/* SPDX-License-Identifier: MIT */
/* How often each CPU is sampled: seldom, until an iteration of a server's event loop is found to be long.
 *
 * Every sample is a timer's interrupt, 7 to 18 us in a virtual machine, which only a stall is worth. */
#ifndef FORKTAIL_LOADER_SAMPLING_RATE_H
#define FORKTAIL_LOADER_SAMPLING_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* Periods in sixteenths of a millisecond: what a sample's record has room for. */
struct sampling_periods {
	uint32_t slow, fast;
};

struct sampling_rate;

/* Samples every CPU that is online now, slowly, with the BPF program `prog`. `on_period(context, cpu,
 * period)` is called for each new period, before it holds. 0, or the first negative errno: those CPUs that
 * could be are sampled all the same. */
int sampling_rate_open(struct sampling_rate **out, const struct sampling_periods *wanted, int prog,
		       void (*on_period)(void *context, int cpu, uint32_t period), void *context);

/* An event-loop iteration on this CPU is long: samples it fast from now on. */
void sampling_rate_raise(struct sampling_rate *p, int cpu, uint64_t now_ns);

/* Slows down again where no iteration has been long for a while. To be called every so often. */
void sampling_rate_lower(struct sampling_rate *p, uint64_t now_ns);

void sampling_rate_close(struct sampling_rate *p);

#endif

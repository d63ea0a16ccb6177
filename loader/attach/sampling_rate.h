/* SPDX-License-Identifier: MIT */
/* The sampling rate of each CPU: low until an event-loop iteration of a server is long, then high. Each
 * sample costs a timer interrupt, 7 to 18 us in a virtual machine. Only a stall is worth that cost. */
#ifndef FORKTAIL_LOADER_SAMPLING_RATE_H
#define FORKTAIL_LOADER_SAMPLING_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* Periods in sixteenths of a millisecond: a sample's record has space for this unit. */
struct sampling_periods {
	uint32_t slow, fast;
};

struct sampling_rate;
struct cpu_events;

/* The period for perf_event_open. */
uint64_t sampling_rate_period_ns(uint32_t sixteenths);

/* Sets the rate of `events`. `on_period(context, cpu, period)` is called before each new period takes effect.
 * NULL without memory. */
struct sampling_rate *sampling_rate_open(const struct sampling_periods *wanted,
					 const struct cpu_events *events,
					 void (*on_period)(void *context, int cpu, uint32_t period),
					 void *context);

/* Before the event that samples this CPU slowly is opened. */
void sampling_rate_begin(struct sampling_rate *p, int cpu);

/* An event-loop iteration on this CPU is long: samples the CPU fast from now on. */
void sampling_rate_raise(struct sampling_rate *p, int cpu, uint64_t now_ns);

/* Slows down sampling on CPUs without long iterations for a while. Call it regularly. */
void sampling_rate_lower(struct sampling_rate *p, uint64_t now_ns);

void sampling_rate_close(struct sampling_rate *p);

#endif

/* SPDX-License-Identifier: MIT */
/* How often each CPU is sampled: seldom, until a turn of a server's event loop is found to be long.
 *
 * Every sample is a timer's interrupt, 7 to 18 us in a virtual machine, which only a stall is worth. */
#ifndef FORKTAIL_LOADER_PACE_H
#define FORKTAIL_LOADER_PACE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Periods in sixteenths of a millisecond: what a sample's record has room for. */
struct pace_wanted {
	uint32_t slow, fast;
};

struct pace;

/* Samples every CPU that is online now, slowly, with the BPF program `prog`. `told(context, cpu, period)` is
 * called for each new period, before it holds. 0, or the first negative errno: those CPUs that could be are
 * sampled all the same. */
int pace_open(struct pace **out, const struct pace_wanted *wanted, int prog,
	      void (*told)(void *context, int cpu, uint32_t period), void *context);

/* A turn on this CPU is long: samples it fast from now on. */
void pace_hurry(struct pace *p, int cpu, uint64_t now_ns);

/* Slows down again where no turn has been long for a while. To be called every so often. */
void pace_relax(struct pace *p, uint64_t now_ns);

void pace_close(struct pace *p);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
/* The perf events of each CPU: the ends of page faults, their begins where nothing else shows them, samples,
 * and the CPU's counters. The kernel removes those of a CPU that goes offline, also for a suspend, so they
 * are opened again when it comes online. */
#ifndef FORKTAIL_LOADER_CPU_EVENTS_H
#define FORKTAIL_LOADER_CPU_EVENTS_H

#include <stdint.h>

#include "bpf/events.h"
#include "loader/attach/support.h"
#include "loader/system/helper_process.h"

struct cpu_events;

enum cpu_event {
	CPU_EVENT_FAULT_MINOR,
	CPU_EVENT_FAULT_MAJOR,
	CPU_EVENT_FAULT_BEGIN,
	CPU_EVENT_CLOCK,
	CPU_EVENTS
};

struct cpu_events_wanted {
	int programs[CPU_EVENTS]; /* descriptor of the loaded program of each event; negative: not wanted */
	uint64_t clock_period_ns;
	enum ft_cpu_counters counters;
};

/* NULL without memory. */
struct cpu_events *cpu_events_new(const struct cpu_events_wanted *wanted);
/* Opens the CPU's events in place of earlier ones: all or none, because a page fault's begin counts only
 * where both kinds of ends are seen. Returns 0 or a negative errno, -ENODEV if the CPU is offline. */
int cpu_events_open(struct cpu_events *e, int cpu);
extern const struct helper_setup events_helper;
/* Starts a process that opens events from now on, because the recorder will no longer be allowed to. Returns
 * 0 or a negative errno: no more events can be opened then. */
int cpu_events_delegate(struct cpu_events *e);
/* The descriptor of the event that samples the CPU, or a negative number. */
int cpu_events_clock(const struct cpu_events *e, int cpu);
/* The descriptor of a counter of the CPU, or a negative number. They are opened with its other events, but
 * not required. */
int cpu_events_counter(const struct cpu_events *e, int cpu, enum ft_cpu_counter counter);
void cpu_events_close(struct cpu_events *e);

#endif

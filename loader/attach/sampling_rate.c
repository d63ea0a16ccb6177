/* SPDX-License-Identifier: MIT */
/* The kernel's CPU clock as a perf event on each CPU, set by period. If a frequency is requested instead, the
 * kernel converts it to a period once and does not change that any more. */
#include "loader/attach/sampling_rate.h"

#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "loader/attach/cpu_events.h"

/* As long as long iterations recur within this time, the rate is not switched back. */
#define CALM_NS 200000000ull

struct sampled_cpu {
	bool fast;
	uint64_t hurried_ns;
};

struct sampling_rate {
	struct sampling_periods wanted;
	const struct cpu_events *events;
	void (*on_period)(void *context, int cpu, uint32_t period);
	void *context;
	int count;
	struct sampled_cpu cpus[];
};

uint64_t sampling_rate_period_ns(uint32_t sixteenths)
{
	return sixteenths * 1000000ull / 16;
}

struct sampling_rate *sampling_rate_open(const struct sampling_periods *wanted,
					 const struct cpu_events *events,
					 void (*on_period)(void *context, int cpu, uint32_t period),
					 void *context)
{
	const int count = libbpf_num_possible_cpus();
	struct sampling_rate *p = count > 0 ? calloc(1, sizeof *p + (size_t)count * sizeof *p->cpus) : NULL;
	if (p)
		*p = (struct sampling_rate){.wanted = *wanted,
					    .events = events,
					    .on_period = on_period,
					    .context = context,
					    .count = count};
	return p;
}

void sampling_rate_begin(struct sampling_rate *p, int cpu)
{
	if (!p || cpu >= p->count)
		return;
	p->on_period(p->context, cpu, p->wanted.slow);
	p->cpus[cpu].fast = false;
}

static void set(struct sampling_rate *p, int cpu, bool fast)
{
	uint32_t period = fast ? p->wanted.fast : p->wanted.slow;
	uint64_t ns = sampling_rate_period_ns(period);
	p->on_period(p->context, cpu, period);
	p->cpus[cpu].fast = fast;
	ioctl(cpu_events_clock(p->events, cpu), PERF_EVENT_IOC_PERIOD, &ns);
}

void sampling_rate_raise(struct sampling_rate *p, int cpu, uint64_t now_ns)
{
	if (!p || cpu < 0 || cpu >= p->count || cpu_events_clock(p->events, cpu) < 0)
		return;
	p->cpus[cpu].hurried_ns = now_ns;
	if (!p->cpus[cpu].fast)
		set(p, cpu, true);
}

void sampling_rate_lower(struct sampling_rate *p, uint64_t now_ns)
{
	for (int cpu = 0; p && cpu < p->count; cpu++)
		if (p->cpus[cpu].fast && now_ns - p->cpus[cpu].hurried_ns > CALM_NS)
			set(p, cpu, false);
}

void sampling_rate_close(struct sampling_rate *p)
{
	free(p);
}

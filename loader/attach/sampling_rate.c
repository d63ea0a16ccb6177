/* SPDX-License-Identifier: MIT */
/* The kernel's CPU clock as a perf event on each CPU, set by period. If a frequency is requested instead, the
 * kernel converts it to a period once and does not change that any more. */
#include "loader/attach/sampling_rate.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "loader/attach/support.h"

/* As long as long iterations recur within this time, the rate is not switched back. */
#define CALM_NS 200000000ull

struct sampled_cpu {
	int fd; /* -1: not sampled */
	bool fast;
	uint64_t hurried_ns;
};

struct sampling_rate {
	struct sampling_periods wanted;
	void (*on_period)(void *context, int cpu, uint32_t period);
	void *context;
	int count;
	struct sampled_cpu cpus[];
};

static uint64_t period_ns(uint32_t sixteenths)
{
	/* Slightly off a round value, so that samples don't run in step with a timer. */
	return sixteenths * 1000000ull / 16 * 1001 / 1000;
}

int sampling_rate_open(struct sampling_rate **out, const struct sampling_periods *wanted, int prog,
		       void (*on_period)(void *context, int cpu, uint32_t period), void *context)
{
	int count = libbpf_num_possible_cpus(), err = 0;
	*out = NULL;
	if (count < 0)
		return count;
	struct sampling_rate *p = malloc(sizeof *p + (size_t)count * sizeof *p->cpus);
	if (!p)
		return -ENOMEM;
	*p = (struct sampling_rate){
	    .wanted = *wanted, .on_period = on_period, .context = context, .count = count};
	struct perf_event_attr attr = support_cpu_clock(period_ns(wanted->slow));
	for (int cpu = 0; cpu < count; cpu++) {
		on_period(context, cpu, wanted->slow);
		p->cpus[cpu] = (struct sampled_cpu){.fd = support_open_event(attr, -1, cpu)};
		int fd = p->cpus[cpu].fd;
		if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog)) {
			err = err ? err : -errno;
			close(fd);
			p->cpus[cpu].fd = -1;
		} else if (fd < 0 && fd != -ENODEV) { /* the CPU is offline */
			err = err ? err : fd;
		}
	}
	*out = p;
	return err;
}

static void set(struct sampling_rate *p, int cpu, bool fast)
{
	uint32_t period = fast ? p->wanted.fast : p->wanted.slow;
	uint64_t ns = period_ns(period);
	p->on_period(p->context, cpu, period);
	p->cpus[cpu].fast = fast;
	ioctl(p->cpus[cpu].fd, PERF_EVENT_IOC_PERIOD, &ns);
}

void sampling_rate_raise(struct sampling_rate *p, int cpu, uint64_t now_ns)
{
	if (!p || cpu < 0 || cpu >= p->count || p->cpus[cpu].fd < 0)
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
	for (int cpu = 0; p && cpu < p->count; cpu++)
		if (p->cpus[cpu].fd >= 0)
			close(p->cpus[cpu].fd);
	free(p);
}

/* SPDX-License-Identifier: MIT */
/* Opening needs CAP_PERFMON, which the recorder does not keep for a whole recording. So a process
 * with no other abilities does it: it reads which event is wanted, and returns its descriptor. The events
 * belong to CPUs, not threads: a thread's events are removed from the CPU and added again at each of its
 * context switches. */
#include "loader/attach/cpu_events.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "loader/attach/support.h"
#include "loader/system/helper_process.h"
#include "loader/system/packets.h"
#include "loader/system/privileges.h"

/* A CPU's descriptors: its events with programs, then its counters. */
enum { CPU_FDS = CPU_EVENTS + FT_CPU_COUNTERS };

struct event_request {
	unsigned which; /* of CPU_FDS */
	int cpu;
	uint64_t clock_period_ns;
	enum ft_cpu_counters counters;
};

struct cpu_events {
	struct cpu_events_wanted wanted;
	bool delegated;
	struct helper_process opener;
	int count;
	int fds[][CPU_FDS]; /* by CPU */
};

static int open_event(const struct event_request *r, int program)
{
	static const uint64_t faults[] = {PERF_COUNT_SW_PAGE_FAULTS_MIN, PERF_COUNT_SW_PAGE_FAULTS_MAJ,
					  PERF_COUNT_SW_PAGE_FAULTS};
	const struct perf_event_attr attr = r->which == CPU_EVENT_CLOCK
						? support_cpu_clock(r->clock_period_ns)
						: (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
									   .size = sizeof attr,
									   .config = faults[r->which],
									   .sample_period = 1};
	int fd = support_open_event(attr, -1, r->cpu);
	if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, program)) {
		int err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* The counters of a CPU are a group, which the kernel counts all at once or not at all. `leader` is the
 * descriptor of its first. */
static int open_counter(const struct event_request *r, int leader)
{
	const enum ft_cpu_counter counter = (enum ft_cpu_counter)(r->which - CPU_EVENTS);
	return support_open_counter(r->counters, counter, r->cpu, counter == FT_CYCLES ? -1 : leader);
}

/* The process. */
static void live(pid_t parent, size_t kept_count)
{
	struct event_request r;
	int leader = -1; /* the cycles of the CPU whose counters are being opened */
	(void)kept_count;
	if (privileges_confine_events(parent))
		_exit(3);
	while (read(HELPER_SOCKET, &r, sizeof r) == sizeof r && r.which < CPU_FDS) {
		const bool counter = r.which >= CPU_EVENTS;
		const int fd = counter ? open_counter(&r, leader) : open_event(&r, HELPER_KEPT + r.which),
			  err = fd < 0 ? fd : 0;
		if (send_packet(HELPER_SOCKET, &err, sizeof err, fd, 0))
			break;
		if (r.which == CPU_EVENTS + FT_CYCLES) {
			if (leader >= 0)
				close(leader);
			leader = fd;
		} else if (fd >= 0) {
			close(fd);
		}
	}
}

const struct helper_setup events_helper = {.name = "forktail-events", .live = live};

struct cpu_events *cpu_events_new(const struct cpu_events_wanted *wanted)
{
	const int count = libbpf_num_possible_cpus();
	struct cpu_events *e = count > 0 ? malloc(sizeof *e + (size_t)count * sizeof *e->fds) : NULL;
	if (!e)
		return NULL;
	*e = (struct cpu_events){.wanted = *wanted, .opener = {.socket = -1}, .count = count};
	for (int cpu = 0; cpu < count; cpu++)
		for (int which = 0; which < CPU_FDS; which++)
			e->fds[cpu][which] = -1;
	return e;
}

/* Returns a descriptor or a negative errno. */
static int ask(struct helper_process *opener, const struct event_request *r)
{
	int err, fd;
	if (opener->socket < 0)
		return -EPIPE;
	if (write(opener->socket, r, sizeof *r) != sizeof *r ||
	    helper_process_answer(opener, &err, sizeof err, &fd)) {
		helper_process_lost(opener, &events_helper);
		return -EPIPE;
	}
	return err ? err : fd;
}

static bool has_ended(const struct helper_process *h)
{
	struct pollfd p = {.fd = h->socket, .events = POLLIN};
	return h->socket < 0 || (poll(&p, 1, 0) == 1 && p.revents & POLLHUP);
}

static void close_cpu(int fds[CPU_FDS])
{
	for (int which = 0; which < CPU_FDS; which++) {
		if (fds[which] >= 0)
			close(fds[which]);
		fds[which] = -1;
	}
}

static void open_counters(struct cpu_events *e, int cpu)
{
	int *fds = e->fds[cpu] + CPU_EVENTS;
	for (int i = 0; i < FT_CPU_COUNTERS && (i == FT_CYCLES || fds[FT_CYCLES] >= 0); i++) {
		const struct event_request r = {
		    .which = CPU_EVENTS + i, .cpu = cpu, .counters = e->wanted.counters};
		fds[i] = e->delegated ? ask(&e->opener, &r) : open_counter(&r, fds[FT_CYCLES]);
	}
}

int cpu_events_open(struct cpu_events *e, int cpu)
{
	int *fds = e->fds[cpu];
	close_cpu(fds);
	if (e->delegated && has_ended(&e->opener)) {
		fputs(
		    "forktail record: the helper process that opens perf events ended. It is started again\n",
		    stderr);
		if (e->opener.socket >= 0)
			helper_process_lost(&e->opener, &events_helper);
		cpu_events_delegate(e);
	}
	for (int which = 0; which < CPU_EVENTS; which++) {
		const struct event_request r = {
		    .which = which, .cpu = cpu, .clock_period_ns = e->wanted.clock_period_ns};
		if (e->wanted.programs[which] < 0)
			continue;
		fds[which] = e->delegated ? ask(&e->opener, &r) : open_event(&r, e->wanted.programs[which]);
		if (fds[which] < 0) {
			const int err = fds[which];
			close_cpu(fds);
			return err;
		}
	}
	if (e->wanted.counters != FT_COUNTERS_NONE)
		open_counters(e, cpu);
	return 0;
}

int cpu_events_delegate(struct cpu_events *e)
{
	e->delegated = true;
	return helper_process_start(&e->opener, &events_helper, e->wanted.programs, CPU_EVENTS);
}

int cpu_events_clock(const struct cpu_events *e, int cpu)
{
	return cpu >= 0 && cpu < e->count ? e->fds[cpu][CPU_EVENT_CLOCK] : -1;
}

int cpu_events_counter(const struct cpu_events *e, int cpu, enum ft_cpu_counter counter)
{
	return cpu >= 0 && cpu < e->count ? e->fds[cpu][CPU_EVENTS + counter] : -1;
}

void cpu_events_close(struct cpu_events *e)
{
	if (!e)
		return;
	for (int cpu = 0; cpu < e->count; cpu++)
		close_cpu(e->fds[cpu]);
	helper_process_end(&e->opener, true);
	free(e);
}

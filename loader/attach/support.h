/* SPDX-License-Identifier: MIT */
/* Probes what this host supports: kernel, BTF, tracepoints, privileges, perf events. The recorder loads what
 * is available and writes what is missing, with the reason, to the recording. `forktail doctor` prints the
 * same list, so both always agree. */
#ifndef FORKTAIL_LOADER_SUPPORT_H
#define FORKTAIL_LOADER_SUPPORT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/events.h"

#ifdef __cplusplus
extern "C" {
#endif

enum need {
	NEED_REQUIRED, /* required for a recording */
	NEED_PART,     /* without it, a recording lacks something */
	NEED_EXTRA,    /* most hosts lack it (virtual machines): a recording is full without it */
};

/* How system calls are traced. */
enum exact_way {
	EXACT_NOT,
	EXACT_EITHER, /* functions if supported, otherwise tracepoints; only for `wanted` */
	EXACT_BY_FUNCTIONS,
	EXACT_BY_TRACEPOINTS,
};

/* What shows the begin of a page fault: the first of these that the kernel has. The last one does not show
 * the reason (bpf/faults.bpf.c). */
enum fault_begin {
	FAULT_BEGIN_TRACEPOINTS,
	FAULT_BEGIN_FUNCTION,
	FAULT_BEGIN_EVENT,
};

/* One feature that is probed. */
struct feature {
	const char *name;    /* name: "sched_switch tracepoint" */
	const char *without; /* what a recording lacks without the feature; for a required one, what fails */
	enum need need;
	bool available;
	char why[160]; /* if not available: what was tried and its result */
};

enum { SUPPORT_FEATURES = 40 };

struct support {
	char kernel[65]; /* uname -r */
	int cpus;	 /* configured */
	/* The programs' settings, see bpf/compat.h. has_find_vma selects one of two programs. */
	bool has_task_storage, has_prev_state_arg, has_block_queue_arg, has_task_pt_regs, has_find_vma;
	/* The kernel may preempt its own code, at least by a setting. */
	bool preemptible;
	/* It may, and programs can prevent that while they run (Linux 6.10, see bpf/program.h). */
	bool disables_preemption;
	/* System calls have tracepoints in a mounted tracefs. */
	bool has_call_events;
	enum exact_way exact; /* set by support_choose_exact */
	/* Perf software events for faults can be opened. */
	bool has_fault_events;
	enum fault_begin fault_begin;
	/* The CPUs' clocks can be sampled with perf events. */
	bool has_cpu_clock;
	/* Cycles and instructions can be counted. */
	bool has_counters;
	struct feature features[SUPPORT_FEATURES];
	size_t count;
};

/* Fills *s. Never fails: a feature that cannot be probed counts as not available. */
void support_probe(struct support *s);

/* Returns the first required feature that is missing, or NULL. */
const struct feature *support_blocker(const struct support *s);

/* Decides how system calls are traced, depending on what is wanted and supported. It attaches a program to a
 * function as a trial, so it is not part of support_probe. Returns 0, or a negative errno and a sentence. */
int support_choose_exact(struct support *s, enum exact_way wanted, char *why, size_t bytes);

/* Returns "fentry", "tracepoints", or "" when system calls are not traced. */
const char *support_exact_name(enum exact_way way);

/* Whether programs can be attached to the entry and exit of a kernel function of this name. Call
 * support_probe first. */
bool support_has_function(const char *name);

/* Whether the kernel has a raw tracepoint of this name with BTF. Call support_probe first. */
bool support_has_tracepoint(const char *name);

/* Returns how many arguments a kernel function has, or -1 if it lacks the function. */
int support_function_arguments(const char *name);

/* Whether the requests of clients can be recorded on this kernel. Returns 0, or a negative errno and a
 * sentence. It may attach a program to a function as a trial. Call support_probe first. */
int support_requests_error(char *why, size_t bytes);

/* Whether requests are seen at functions, in place of tracepoints that this kernel lacks. */
bool support_requests_by_functions(void);

/* Whether tracefs has this event ("syscalls/sys_enter_fsync"). Mounts nothing. */
bool support_has_event(const char *event);

/* Whether the interrupts of a CPU's timer can be traced, given the name of its clock event device. */
bool support_sees_timer(const char *clock_event);

/* Returns the attributes of the perf event that samples a CPU once per period, for perf_event_open. */
struct perf_event_attr support_cpu_clock(uint64_t period_ns);

/* "hardware", "software" or "none". */
const char *support_counters_name(enum ft_cpu_counters counters);

/* Opens a counter of a CPU in the group of another one; leader -1: it is a group's first. Returns a
 * descriptor or a negative errno. */
int support_open_counter(enum ft_cpu_counters counters, enum ft_cpu_counter counter, int cpu, int leader);

/* Calls perf_event_open. Returns a descriptor or a negative errno. */
int support_open_event(struct perf_event_attr attr, pid_t tid, int cpu);

/* `forktail doctor`: prints the list. Returns the exit status: 0 everything is supported, 1 a recording would
 * lack something, 3 no recording is possible. */
int doctor_print(void);

#ifdef __cplusplus
}
#endif

#endif

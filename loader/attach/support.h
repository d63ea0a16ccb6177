/* SPDX-License-Identifier: MIT */
/* What this host offers a recording, found by asking it: kernel, BTF, tracepoints, privileges, perf
 * events. The recorder loads what is there and writes what is missing, with the reason, into the
 * recording; `forktail doctor` prints the same list. One list, so that the two can't disagree. */
#ifndef FORKTAIL_LOADER_SUPPORT_H
#define FORKTAIL_LOADER_SUPPORT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum need {
	NEED_REQUIRED, /* no recording without it */
	NEED_PART,     /* a recording without it lacks something */
};

/* How system calls are traced. */
enum exact_way {
	EXACT_NOT,
	EXACT_EITHER, /* functions if that can be done here, else tracepoints; wanted only */
	EXACT_BY_FUNCTIONS,
	EXACT_BY_TRACEPOINTS,
};

/* One thing looked for. */
struct feature {
	const char *name;    /* what: "sched_switch tracepoint" */
	const char *without; /* what a recording lacks without it; for required ones what fails */
	enum need need;
	bool available;
	char why[160]; /* when not available: what was tried and what came back */
};

enum { SUPPORT_FEATURES = 40 };

struct support {
	char kernel[65]; /* uname -r */
	int cpus;	 /* configured */
	/* The programs' settings, see bpf/compat.h; has_find_vma chooses between two programs. */
	bool has_task_storage, has_prev_state_arg, has_block_queue_arg, has_task_pt_regs, has_find_vma;
	/* System calls have tracepoints, in a tracefs that is mounted. */
	bool has_call_events;
	enum exact_way exact; /* set by support_choose_exact */
	/* Perf software events for faults can be opened. */
	bool has_fault_events;
	/* The CPUs' clocks can be sampled. */
	bool has_cpu_clock;
	struct feature features[SUPPORT_FEATURES];
	size_t count;
};

/* Fills *s. Never fails: what can't be asked is not available. */
void support_probe(struct support *s);

/* The first required feature that is missing, or NULL. */
const struct feature *support_blocker(const struct support *s);

/* Decides how system calls are traced, by what is wanted and what can be done. Tries out a program on a
 * function, which is why it is no part of support_probe. Returns 0, or a negative errno with a sentence. */
int support_choose_exact(struct support *s, enum exact_way wanted, char *why, size_t bytes);

/* "fentry", "tracepoints", or "" when they are not traced. */
const char *support_exact_name(enum exact_way way);

/* Whether programs may be put before and after a kernel function of this name; usable after support_probe. */
bool support_has_function(const char *name);

/* Whether the kernel has a raw tracepoint of this name with BTF; usable after support_probe. */
bool support_has_tracepoint(const char *name);

/* Whether tracefs has this event ("syscalls/sys_enter_fsync"), mounting nothing. */
bool support_has_event(const char *event);

/* Whether the interrupts of a CPU's timer can be traced, by the name of its clock event device. */
bool support_sees_timer(const char *clock_event);

/* The perf event that samples a CPU once in each period of its own running, for perf_event_open. */
struct perf_event_attr support_cpu_clock(uint64_t period_ns);

/* perf_event_open: a descriptor, or a negative errno. */
int support_open_event(struct perf_event_attr attr, pid_t tid, int cpu);

/* `forktail doctor`: prints the list. Returns the exit status: 0 everything is there, 1 a recording would
 * lack something, 3 no recording is possible. */
int doctor_print(void);

#ifdef __cplusplus
}
#endif

#endif

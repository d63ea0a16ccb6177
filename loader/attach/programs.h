/* SPDX-License-Identifier: MIT */
/* Life cycle of the kernel programs: open, configure, load, attach, open and close accounts, measure cost. */
#ifndef FORKTAIL_LOADER_PROGRAMS_H
#define FORKTAIL_LOADER_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/events.h"
#include "loader/attach/support.h"

#ifdef __cplusplus
extern "C" {
#endif

struct programs;

/* Receives one event of the ring. `bytes` is the size of the event as the kernel wrote it. */
typedef void (*event_handler)(void *context, const void *event, size_t bytes);

/* What to record. */
struct programs_wanted {
	uint64_t min_span_ns; /* shorter intervals are summed up */
	bool with_client;     /* CPU slices of load generators are traced too */
	/* CPU samples: the period in sixteenths of a millisecond (1 to 255), and the period while an
	 * event-loop iteration is long. 0: no samples. */
	uint32_t samples_slow, samples_fast;
	enum ft_cpu_counters counters; /* of the CPUs, read with CPU samples; hardware: if the host has any */
	bool interrupts;      /* hardware interrupts (devices, timers, other CPUs) on top of traced threads */
	bool softirqs;	      /* soft interrupts on top of traced threads */
	bool keep;	      /* continuous recording: the recorder asks for open states and adds processes */
	enum exact_way exact; /* system calls are traced: iterations that never wait, connections, the
				 complete time of an fsync */
};

/* Opens, configures and loads the programs that are wanted and that `support` reports as available.
 * programs_log() returns libbpf's messages, which are printed when loading fails. Returns a negative errno on
 * failure. */
int programs_load(struct programs **out, const struct support *support, const struct programs_wanted *wanted,
		  event_handler handler, void *context);

/* Called with a program that cannot be attached or used. */
typedef void (*skip_handler)(void *context, const char *program, int error);

/* Attaches everything. After that (not before), */
int programs_attach(struct programs *p, skip_handler skipped, void *context);
/* names processes to trace (processes named earlier keep their kind) */
int programs_trace(struct programs *p, const pid_t *pids, size_t count, enum ft_traced_as as);
/* and opens the accounts of their threads, whose events follow through the ring. */
int programs_open_accounts(struct programs *p);
/* For continuous recording: opens accounts of threads that have none yet, after more processes were named.
 * Announces again threads whose begin was lost. */
int programs_open_more(struct programs *p);
/* No longer names a process, whose id may be reused. Open accounts of its threads stay open. */
void programs_forget(struct programs *p, pid_t pid);
/* Requests events of type FT_EVENT_OPEN, which follow through the ring and describe the current moment. */
int programs_report_open(struct programs *p);
/* Called with a CPU that came online: its perf events are open (0), or cannot be opened (negative errno). */
typedef void (*cpu_handler)(void *context, int cpu, int error);
/* At intervals: opens the perf events of CPUs that came online. */
void programs_follow_cpus(struct programs *p, cpu_handler handler, void *context);
/* A descriptor that becomes readable when the ring fills quickly, and stays so until the ring is empty. */
int programs_fd(struct programs *p);
/* Passes the events in the ring to the handler, and those that arrive meanwhile, but in total no more bytes
 * than the ring holds: events may arrive faster than they are read. Returns 0 or a negative errno. */
int programs_drain(struct programs *p);
/* The same, but no more than 256 kB: reading a whole ring takes seconds on a CPU of which the recorder gets a
 * tenth, and what is due meanwhile would wait for it. */
int programs_drain_piece(struct programs *p);

/* The counters that are read. */
enum ft_cpu_counters programs_cpu_counters(const struct programs *p);

/* At intervals: passes what processes wrote to the page cache lately, which becomes a separate event only
 * with the next write. */
void programs_take_writes(struct programs *p);

/* Closes the accounts, drains the rest and detaches everything. */
int programs_stop(struct programs *p);
void programs_free(struct programs *p);

/* Sets whether a CPU quota applies to a target. Without one, the programs don't check for throttling. */
void programs_quota(struct programs *p, bool in_force);

/* Current sums over all CPUs. Drops are indexed by enum ft_drop_slot. */
void programs_counters(const struct programs *p, uint64_t counters[FT_COUNTERS]);
void programs_drops(const struct programs *p, uint64_t drops[FT_DROP_SLOTS]);

/* The kernel's run-time statistics cost time themselves (two clock reads per run). They are switched on for
 * part of the time, and totals are extrapolated. */
bool programs_measure(struct programs *p, bool on); /* whether the statistics are on */

/* The map of targets, which another object may share. */
int programs_targets_map(const struct programs *p);
struct bpf_object;
/* The cost of this object's programs is included from now on, after those of `p`. */
void programs_include(struct programs *p, struct bpf_object *more);

struct program_cost {
	const char *name;
	uint64_t runs;	 /* while the statistics were on */
	uint64_t run_ns; /* of those */
	/* Runs that the kernel skipped because the same program was already running on that CPU, or any
	 * program for tracepoints and perf events. 0 before Linux 5.12, which does not report them. */
	uint64_t missed;
};
enum { PROGRAMS_MAX = 96 }; /* more than the number of programs */
/* Writes one entry per loaded program, always in the same order. Returns their number. */
size_t programs_costs(struct programs *p, struct program_cost *costs, size_t room);

/* Returns libbpf's latest messages, for an error message. */
const char *programs_log(void);

#ifdef __cplusplus
}
#endif

#endif

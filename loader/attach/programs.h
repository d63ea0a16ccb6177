/* SPDX-License-Identifier: MIT */
/* The kernel programs' life: open, set, load, attach, open the accounts, close them, and what they cost. */
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

/* Gets one event of the ring. `bytes` is the event's size as the kernel wrote it. */
typedef void (*event_handler)(void *context, const void *event, size_t bytes);

/* What to record. */
struct programs_wanted {
	uint64_t min_span_ns; /* shorter intervals are summed up */
	bool with_client;     /* when load generators run is traced too */
	/* Of what runs on the CPUs: every so many sixteenths of a millisecond (1 to 255); while an
	 * event-loop iteration is long, every so many of these. 0: none. */
	uint32_t samples_slow, samples_fast;
	bool interrupts; /* of devices, timers and other CPUs, on top of traced threads */
	bool softirqs;	 /* on top of them */
	bool keep; /* on and on: what threads are in the middle of is asked for, further processes come */
	enum exact_way exact; /* system calls are traced: iterations that never wait, connections, the whole
				 of an fsync */
};

/* Opens, sets and loads what is wanted and `support` says the host has. Messages of libbpf go to *log (a
 * static buffer), shown when loading fails. Negative errno on failure. */
int programs_load(struct programs **out, const struct support *support, const struct programs_wanted *wanted,
		  event_handler handler, void *context);

/* Called with a program that can't be attached or used. */
typedef void (*skip_handler)(void *context, const char *program, int error);

/* Attaches everything. Then, and not before: */
int programs_attach(struct programs *p, skip_handler skipped, void *context);
/* names processes to trace (those that were named before stay what they are), */
int programs_trace(struct programs *p, const pid_t *pids, size_t count, enum ft_traced_as as);
/* and opens the accounts of their threads, whose events follow through the ring. */
int programs_open_accounts(struct programs *p);
/* Of a recorder that goes on for ever: the accounts of threads that have none yet, when further processes
 * have been named; */
int programs_open_more(struct programs *p);
/* forgets a process that has ended, whose id another one may get; */
void programs_forget(struct programs *p, pid_t pid);
/* and has events of type FT_EVENT_OPEN follow through the ring, as of now. */
int programs_tell_open(struct programs *p);
/* An fd that becomes readable when the ring fills fast. */
int programs_fd(struct programs *p);
/* Hands all events in the ring to the handler. Returns their number or a negative errno. */
int programs_drain(struct programs *p);

/* Closes the accounts, drains the rest and detaches everything. */
int programs_stop(struct programs *p);
void programs_free(struct programs *p);

/* Whether a CPU quota applies to a target: without one the programs don't look for throttling. */
void programs_quota(struct programs *p, bool in_force);

/* Current sums over all CPUs; drops by enum ft_drop_slot. */
void programs_counters(const struct programs *p, uint64_t counters[FT_COUNTERS]);
void programs_drops(const struct programs *p, uint64_t drops[FT_DROP_SLOTS]);

/* The kernel's run-time statistics cost time themselves (two clock reads a run), so they are switched on
 * for part of the time only, and totals are extrapolated from it. */
bool programs_measure(struct programs *p, bool on); /* whether they are on */

struct program_cost {
	const char *name;
	uint64_t runs;	 /* while measured */
	uint64_t run_ns; /* of those */
	/* Runs that the kernel skipped because it was in the middle of the same program, or (tracepoints and
	 * perf events) of any on that CPU. 0 where the kernel doesn't tell, before 5.12. */
	uint64_t missed;
};
enum { PROGRAMS_MAX = 96 }; /* more than there are */
/* One entry per loaded program, always in the same order; returns their number. */
size_t programs_costs(struct programs *p, struct program_cost *costs, size_t room);

/* libbpf's last words, for an error message. */
const char *programs_log(void);

#ifdef __cplusplus
}
#endif

#endif

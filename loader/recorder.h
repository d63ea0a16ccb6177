/* SPDX-License-Identifier: MIT */
/* forktail-guard watches the ring that the recorder fills: it takes snapshots, serves metrics and runs
 * commands. It does not record and needs no privileges for it. So it is a separate process of the ring's user
 * that reads files. The recorder starts it, never waits for it, and continues without it. */
#ifndef FORKTAIL_LOADER_RECORDER_H
#define FORKTAIL_LOADER_RECORDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/attach.h"
#include "loader/output.h"
#include "loader/requests.h"
#include "loader/samples.h"
#include "loader/targets.h"

enum { GUARD_ARGS_MAX = 128 };

/* The guard's command line, without its name and the ring. */
struct guard_args {
	const char *all[GUARD_ARGS_MAX];
	size_t count; /* 0: no guard is wanted */
};

/* Adds an option and its value (NULL: no value). -E2BIG: too many. */
int guard_args_add(struct guard_args *g, const char *option, const char *value);

/* Starts a process of that user that runs the guard as long as the recorder lives. If the guard exits, it is
 * started again after a pause that grows from a second to a minute, but not if it rejected its command line.
 * -ENOENT: the guard is not in the directory of this program. -EACCES: the user cannot run it there. */
int guard_start(const struct guard_args *g, const char *ring, const struct file_owner *user);
/* Ends the guard, if there is one, and waits for its end for at most 3 s: the next recorder's guard needs the
 * same sockets. */
void guard_end(void);

/* `forktail doctor --json`, which returns what doctor_print() does, and the schema of its output. 3: it could
 * not be written. */
int doctor_print_json(void);
int doctor_print_schema(void);

/* The options of a recording. */

struct record_options {
	const char *output;	     /* a file, or with `keep` a directory */
	struct ring_limits keep;     /* age 0: keep everything in one file */
	const char *keep_text;	     /* as given by the user */
	const char *user;	     /* owner of a ring; NULL: chosen by file_owner_find */
	struct guard_args guard;     /* only for a ring */
	struct selectors *selectors; /* what matches targets; for a ring it is evaluated repeatedly */
	uint64_t duration_ns;	     /* 0: until a signal or until the last target exits */
	uint64_t start_at_ns;	     /* CLOCK_REALTIME; 0: as soon as possible */
	int tell_fd; /* gets the output's path and a line end when the recording has begun; or -1 */
	struct programs_wanted wanted;
	struct requests_wanted requests;
	struct probe_wanted probes[FT_PROBES_MAX];
	size_t probe_count;
	int argc; /* the command line, for the manifest */
	char **argv;
};

/* The state of a running recorder. Only for its own files: record.c starts, runs, ends and
 * reports its cost, flight_recorder.c writes a ring. */

/* Values when the recording or the segment began. */
struct self_report_base {
	uint64_t t_ns, cpu_ns, helper_cpu_ns, unwound, unwind_ns, lost;
	uint64_t counters[FT_COUNTERS];
	double program_ns[PROGRAMS_MAX];
	uint64_t program_runs[PROGRAMS_MAX];
};

struct recorder {
	const struct record_options *options;
	struct targets *targets; /* changes while a ring is recorded */
	struct support support;
	struct ft_writer *writer;
	struct programs *programs;
	struct threads threads;
	struct drain drain;
	struct proc_metrics *metrics;
	struct quotas *quotas;
	struct cgroup_memory *cgroup_memory;
	struct target_files *files;
	struct unwind_queue *unwind_queue;
	struct requests *requests; /* NULL: not wanted */
	struct readers *readers;   /* NULL: this kernel cannot tell who reads a socket */
	struct tcp *tcp;	   /* NULL: could not be loaded */
	struct probes *probes;	   /* NULL: none are wanted */
	struct losses losses;
	uint64_t start_ns;
	uint64_t attached_ns; /* --duration counts from here */
	uint64_t slow_until_ns;
	struct look sweep_look; /* for threads whose end was lost */
	struct cost_account cost;
	uint64_t window_from_ns, next_window_ms; /* of the statistics: since when, or 0; the next one */
	uint64_t load_cpu_ns;			 /* CPU time of the start */
	struct self_report_base base;
	json_t *missing;
	struct segments *ring; /* NULL: one file until the end */
	uint64_t ring_start_ns;
	json_t *manifest; /* shared by a ring's segments, except for members that differ per segment */
	struct descriptions *descriptions; /* of the targets */
	uint64_t segments;
	struct look open_look;	     /* at the threads' open states */
	uint64_t thread_events_lost; /* of those, threads that exist have been announced again */
	struct look follow_look;     /* for targets */
	uint64_t disk_error_ns;	     /* when writing last failed */
	bool disk_error_reported;    /* whether the write error was reported, after it persisted */
	int manager;		     /* of the service, or -1 */
	uint64_t alive_ns;	     /* when the manager was last told so */
};

/* Flight recorder: writes a ring of segments instead of one file (loader/output.h) and continues whatever
 * happens to its targets or the disk. */

/* Opens the ring's directory. Returns the exit status. */
int flight_recorder_open(struct recorder *r);
/* Starts the guard if it is wanted. Returns the exit status. */
int flight_recorder_start_guard(struct recorder *r);
/* Begins the first segment. Returns 0 or a negative errno. */
int flight_recorder_begin(struct recorder *r);
/* Called at every tick of the recorder. */
void flight_recorder_tick(struct recorder *r);
/* The configuration was changed: writes a note for the guard, which reads it. */
void flight_recorder_reload(struct recorder *r);
/* A user requests a snapshot of what just happened: writes a note for programs that read the ring. */
void flight_recorder_trigger(struct recorder *r);

/* Targets that start, restart or exit while the flight recorder runs. */

/* Called at every tick of the recorder: looks for targets once per second, or less often where that takes
 * long. */
void follow_tick(struct recorder *r);
/* Looks at the next tick, regardless of the cost. */
void follow_soon(struct recorder *r);

/* The first block of a recording: what records which processes, where, with which options, and what will be
 * missing. */

/* `targets`: their descriptions, taken over. `missing` is [{"what": ..., "why": ...}, ...]; the manifest
 * takes its own reference. */
json_t *manifest(const struct record_options *options, json_t *targets, const struct support *support,
		 struct programs *p, uint64_t start_ns, json_t *missing);

/* One recording, from probing the host to the trailer. */

/* Records the targets. Prints progress on stderr. Returns the exit status (0 done, 3 the host does not allow
 * it). */
int record(const struct record_options *options, struct targets *targets);

/* The recorder's reports about itself: losses, cost, clocks, and how it ended. */

void report_drops(struct recorder *r);
/* A read takes one system call per program, so it happens less often than reading drops. */
void report_misses(struct recorder *r);
/* Begins and ends windows of the kernel's statistics. `now_ms`: since the first tick. */
void measure_cost(struct recorder *r, uint64_t now_ms);
/* Ends an open window. */
void measure_cost_end(struct recorder *r);
void report_cost(struct recorder *r);
void report_clock(struct recorder *r);
/* Times soft interrupts or samples them, and says which from now on. */
void follow_softirqs(struct recorder *r);
/* Says it if they are sampled. */
void report_softirqs_sampled(struct recorder *r);
/* Metrics and quotas. */
void report_host(struct recorder *r);
/* Follows CPUs that come online. */
void report_cpus(struct recorder *r);

/* Counting starts here. */
void self_report_begin_segment(struct recorder *r);

/* Returns the summary as text, which the caller frees. Takes the reference to `ended`. NULL: no memory. */
char *summary_text(struct recorder *r, const char *reason, uint64_t end_ns, json_t *ended);
#endif

/* SPDX-License-Identifier: MIT */
/* The state of a running recorder. Only for its own files: record.c starts, runs and ends it, self_report.c
 * reports its cost, flight_recorder.c writes a ring. */
#ifndef FORKTAIL_LOADER_RECORDER_H
#define FORKTAIL_LOADER_RECORDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/attach/programs.h"
#include "loader/attach/support.h"
#include "loader/output/cgroup_memory.h"
#include "loader/output/drain.h"
#include "loader/output/losses.h"
#include "loader/output/proc_metrics.h"
#include "loader/output/quota.h"
#include "loader/output/segments.h"
#include "loader/record_options.h"
#include "loader/requests/readers.h"
#include "loader/requests/requests.h"
#include "loader/samples/target_files.h"
#include "loader/samples/unwind_queue.h"
#include "loader/targets/targets.h"
#include "loader/targets/threads.h"

/* Values when the recording or the segment began. */
struct self_report_base {
	uint64_t t_ns, cpu_ns, helper_cpu_ns, unwound, unwind_ns, lost;
	uint64_t counters[FT_COUNTERS];
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
	struct losses losses;
	uint64_t start_ns;
	uint64_t attached_ns;		       /* --duration counts from here */
	uint64_t measured_ns, measure_from_ns; /* how long the statistics were on; since when, or 0 */
	uint64_t load_cpu_ns;		       /* CPU time of the start */
	struct self_report_base base;
	json_t *missing;
	struct segments *ring; /* NULL: one file until the end */
	uint64_t ring_start_ns;
	json_t *manifest; /* shared by a ring's segments, except for members that differ per segment */
	struct descriptions *descriptions; /* of the targets */
	uint64_t segments;
	uint64_t open_due_ns;	     /* when the threads' open states are requested next */
	uint64_t thread_events_lost; /* of those, threads that exist have been announced again */
	uint64_t follow_due_ns;	     /* when targets are looked for next */
	uint64_t disk_error_ns;	     /* when writing last failed */
	bool disk_error_reported;    /* whether the write error was reported, after it persisted */
	int manager;		     /* of the service, or -1 */
	uint64_t alive_ns;	     /* when the manager was last told so */
};

#endif

/* SPDX-License-Identifier: MIT */
/* All that a recorder at work has. Its own files' affair: record.c begins, runs and ends it, figures.c says
 * what it costs, keep.c makes a ring of it. */
#ifndef FORKTAIL_LOADER_RECORDER_H
#define FORKTAIL_LOADER_RECORDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/attach/programs.h"
#include "loader/attach/support.h"
#include "loader/output/drain.h"
#include "loader/output/losses.h"
#include "loader/output/proc_metrics.h"
#include "loader/output/quota.h"
#include "loader/output/segments.h"
#include "loader/record_options.h"
#include "loader/samples/unwind_queue.h"
#include "loader/targets/targets.h"
#include "loader/targets/threads.h"

/* What was so when the recording began, or the segment. */
struct self_report_base {
	uint64_t t_ns, cpu_ns, helper_cpu_ns, unwound, unwind_ns, lost;
	uint64_t counters[FT_COUNTERS];
};

struct recorder {
	const struct record_options *options;
	struct targets *targets; /* of a ring they change */
	struct support support;
	struct ft_writer *writer;
	struct programs *programs;
	struct threads threads;
	struct drain drain;
	struct proc_metrics *metrics;
	struct quotas *quotas;
	struct unwind_queue *unwind_queue;
	struct losses losses;
	uint64_t start_ns;
	uint64_t attached_ns;		       /* what --duration counts from */
	uint64_t measured_ns, measure_from_ns; /* time the statistics were on; since when, or 0 */
	uint64_t load_cpu_ns;		       /* what getting there took */
	struct self_report_base base;
	json_t *missing;
	struct segments *ring; /* NULL: one file, until it ends */
	uint64_t ring_start_ns;
	json_t *manifest; /* of a ring's segments, but for what is each one's own */
	uint64_t manifest_ns;
	uint64_t segments;
	uint64_t open_due_ns; /* when it is next asked what threads are in the middle of */
	uint64_t follow_due_ns,
	    young_until_ns;	/* when targets are looked for next; until when some are new */
	uint64_t disk_error_ns; /* when it was last so that nothing can be written */
	bool disk_told;		/* that nothing can be written, since it could last */
};

#endif

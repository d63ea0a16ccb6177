/* SPDX-License-Identifier: MIT */
/* What a run's tests have in common, and running one of them. */
#ifndef FORKTAIL_LOADGEN_PHASE_H
#define FORKTAIL_LOADGEN_PHASE_H

#include <stdbool.h>
#include <stdint.h>

#include "json.h"
#include "log.h"
#include "options.h"
#include "report.h"
#include "workload.h"

struct run {
	const struct options *o;
	struct request_log *log;
	bool log_failed; /* and it was said */
	int signal_fd;
	uint32_t next_connection;
	bool progress_open; /* a progress line without its end stands on the terminal */
	enum run_end end;
	int status;
	struct json runs; /* of the figures: what goes into "runs" */
};

/* One sentence on stderr, below the line of progress; the run's exit status says it too. */
void complain(struct run *r, const char *text);

/* Runs one test from connecting to its table, and adds its figures to r->runs. `w` is what is asked of the
 * server, not prepared yet. */
void run_phase(struct run *r, const char *name, const struct workload *w);

#endif

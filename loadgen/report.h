/* SPDX-License-Identifier: MIT */
/* What the user reads: the progress line, the closing table, the figures as JSON. */
#ifndef FORKTAIL_LOADGEN_REPORT_H
#define FORKTAIL_LOADGEN_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "figures.h"
#include "json.h"
#include "options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a run ended; anything but RUN_DONE is said in words. */
enum run_end { RUN_DONE, RUN_INTERRUPTED, RUN_SERVER_LOST };
extern const char *const run_end_names[]; /* "done", "interrupted", "server lost" */

/* What one line of progress says. */
struct progress {
	uint64_t requests;
	uint64_t span_ns; /* in which they ended */
	struct ft_histogram latency;
};

void progress_add(struct progress *p, const struct stats *s);

/* Prints it, if there is anything, and empties it. eta_s < 0: not known. `tty`: the line overwrites the one
 * before. */
void report_progress(FILE *to, bool tty, const char *name, double elapsed_s, struct progress *p,
		     uint64_t errors, double eta_s);

/* "SET+GET 1:10, 50 connections, closed loop ..." */
void report_headline(char *out, size_t size, const struct options *o, const char *name);

void report_table(FILE *to, const struct figures *f, const char *headline);

/* The same figures as members of an object that is already open. */
void report_json(struct json *j, const struct figures *f);

#ifdef __cplusplus
}
#endif
#endif

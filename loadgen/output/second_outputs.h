/* SPDX-License-Identifier: MIT */
/* Files that grow a line per second while the load runs: the series of figures as CSV, and HdrHistogram's
 * interval log. */
#ifndef FORKTAIL_LOADGEN_SECOND_OUTPUTS_H
#define FORKTAIL_LOADGEN_SECOND_OUTPUTS_H

#include <stdint.h>
#include <stdio.h>

#include "loadgen/hdr_log/hdr_log.h"
#include "loadgen/options/options.h"
#include "loadgen/results/stats.h"

struct second_outputs {
	FILE *series;
	struct hdr_log *hlog;
	uint64_t start_ns; /* times in both count from it */
};

/* Creates the files that the options name. 0, or -1 and a sentence. */
int second_outputs_open(struct second_outputs *out, const struct options *o, char *error, size_t size);
/* What was counted from from_ns to to_ns in a test. */
void second_outputs_write(struct second_outputs *out, const char *test, const struct workload *w,
			  const struct stats *second, uint64_t from_ns, uint64_t to_ns);
/* 0, or -1 and a sentence when a file could not be written. */
int second_outputs_close(struct second_outputs *out, const struct options *o, char *error, size_t size);

#endif

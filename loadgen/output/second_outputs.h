/* SPDX-License-Identifier: MIT */
/* What is written once per second during the load: the series of figures as CSV, HdrHistogram's interval log,
 * and statsd's lines. */
#ifndef FORKTAIL_LOADGEN_SECOND_OUTPUTS_H
#define FORKTAIL_LOADGEN_SECOND_OUTPUTS_H

#include <stdint.h>
#include <stdio.h>

#include "loadgen/hdr_log/hdr_log.h"
#include "loadgen/options/options.h"
#include "loadgen/results/stats.h"
#include "statsd.h"

struct second_outputs {
	FILE *series;
	struct hdr_log *hlog;
	struct statsd statsd;
	uint64_t start_ns; /* origin of times in both */
};

/* Creates the files that the options name. Returns 0, or -1 and a sentence. */
int second_outputs_open(struct second_outputs *out, const struct options *o, char *error, size_t size);
/* The counts from from_ns to to_ns of a test. */
void second_outputs_write(struct second_outputs *out, const char *test, const struct workload *w,
			  const struct stats *second, uint64_t from_ns, uint64_t to_ns);
/* Returns 0, or -1 and a sentence if a file could not be written. */
int second_outputs_close(struct second_outputs *out, const struct options *o, char *error, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/* The figures of each second as statsd lines over UDP: counters of requests and errors, gauges of latencies.
 */
#ifndef FORKTAIL_LOADGEN_STATSD_H
#define FORKTAIL_LOADGEN_STATSD_H

#include "loadgen/results/stats.h"
#include "loadgen/workload/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

struct statsd {
	int fd; /* -1: closed */
	const char *prefix;
};

/* Opens a socket to a host (name or address); `prefix` must outlive it. Returns 0, or -1 and a sentence. */
int statsd_open(struct statsd *s, const char *host, uint32_t port, const char *prefix, char *error,
		size_t size);
void statsd_close(struct statsd *s);
/* Sends the counts of a second: PREFIX.requests and .errors, .p50, .p99, .p99_9 and .max (ms) over all
 * operations, and the same as PREFIX.OPERATION.requests ... if there are several. Datagrams that cannot be
 * sent are lost, as statsd expects. */
void statsd_send(const struct statsd *s, const struct workload *w, const struct stats *second);

#ifdef __cplusplus
}
#endif
#endif

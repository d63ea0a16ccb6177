/* SPDX-License-Identifier: MIT */
/* What a load thread counts. A thread fills one `struct stats` a second and hands it over whole, so the
 * hot path shares nothing: no atomics, no locks, and the second's percentiles come for free.
 *
 * Latency is counted for every request that was due and either got an answer or was given up (time-out,
 * never sent): those last are counted up to the moment they were given up, since leaving them out would
 * make a stalled server look better the longer it stalls. Requests on a connection that broke have no
 * meaningful latency and are counted as errors only.
 */
#ifndef FORKTAIL_LOADGEN_STATS_H
#define FORKTAIL_LOADGEN_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/format.h"
#include "recording/histogram.h"
#include "resp.h"
#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { STATUSES = FT_STATUS_UNSENT + 1, ERROR_WORDS = 16 };

/* Error replies by their first word; the last entry takes what came after the table was full. */
struct error_word {
	char word[RESP_WORD];
	uint64_t count;
};

struct operation_stats {
	uint64_t status[STATUSES];
	uint64_t bytes; /* sent and received */
	struct ft_histogram latency;
};

struct stats {
	uint64_t late_sum_ns, late_max_ns; /* from due to handed to the kernel */
	uint64_t sent;
	uint64_t last_end_ns;
	uint64_t span_ns; /* the time that was counted; of several threads, the longest */
	struct error_word errors[ERROR_WORDS];
	struct operation_stats *operations[OPERATIONS]; /* NULL: not used in this run */
};

struct stats *stats_new(const struct workload *w);
void stats_free(struct stats *s);
void stats_reset(struct stats *s);
void stats_merge(struct stats *into, const struct stats *from);

/* Requests that ended in an error, and all that ended. */
uint64_t stats_errors(const struct stats *s);
uint64_t stats_requests(const struct stats *s);
void stats_error_word(struct stats *s, const char *word);

/* Whether a request that ended so has a latency. */
static inline bool status_has_latency(unsigned status)
{
	return status != FT_STATUS_RESET && status != FT_STATUS_REFUSED;
}

static inline bool status_is_error(unsigned status)
{
	return status != FT_STATUS_OK && status != FT_STATUS_MISS;
}

extern const char *const status_names[STATUSES];

#ifdef __cplusplus
}
#endif
#endif

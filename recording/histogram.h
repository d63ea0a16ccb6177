/* SPDX-License-Identifier: MIT */
/* A latency histogram: fixed memory, bounded relative error, for a progress line each second and for runs
 * that don't log every request. The bucket layout is that of HdrHistogram with 3 significant digits (11 bits
 * of sub-bucket), so its log format can carry it. Exact percentiles come from the request log. */
#ifndef FORKTAIL_HISTOGRAM_H
#define FORKTAIL_HISTOGRAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values 0 .. 2^42-1 ns (73 minutes) with at most 0.1 % error; larger ones are counted as the largest. */
enum { FT_HIST_SUB_BITS = 11, FT_HIST_BUCKETS = 32 };
enum { FT_HIST_SLOTS = (FT_HIST_BUCKETS + 1) << (FT_HIST_SUB_BITS - 1) };

struct ft_histogram {
	uint64_t count, min_ns, max_ns;
	double sum_ns, sum_squares;
	uint64_t slots[FT_HIST_SLOTS];
};

void ft_histogram_reset(struct ft_histogram *h);
/* Adds a value `times` times (at least once). */
void ft_histogram_add_equal(struct ft_histogram *h, uint64_t value_ns, uint32_t times);
static inline void ft_histogram_add(struct ft_histogram *h, uint64_t value_ns)
{
	ft_histogram_add_equal(h, value_ns, 1);
}
void ft_histogram_merge(struct ft_histogram *into, const struct ft_histogram *from);
/* The value at `percentile` (0..100], the highest value its bucket can hold, capped at max_ns; 0 when empty.
 */
uint64_t ft_histogram_percentile(const struct ft_histogram *h, double percentile);
/* The highest value that is counted in slots[slot]. */
uint64_t ft_histogram_slot_value(unsigned slot);
double ft_histogram_mean(const struct ft_histogram *h);
double ft_histogram_stddev(const struct ft_histogram *h);

#ifdef __cplusplus
}
#endif
#endif

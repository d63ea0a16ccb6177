/* SPDX-License-Identifier: MIT */
/* The histogram's arithmetic. A value of b bits keeps its upper 11: slots are 2^(b-11) wide, so the error is
 * below 1 in 1024 of the value. The layout is HdrHistogram's (Gil Tene), with half a table per power of two
 * above the first. */
#include "histogram.h"

#include <math.h>
#include <string.h>

#define SUB_COUNT (1u << FT_HIST_SUB_BITS)
#define LARGEST ((1ull << (FT_HIST_SUB_BITS + FT_HIST_BUCKETS - 1)) - 1)

_Static_assert(FT_HIST_SLOTS == FT_HIST_BUCKETS * (SUB_COUNT / 2) + SUB_COUNT / 2, "slots");

static unsigned slot_of(uint64_t value)
{
	unsigned bucket = 64 - FT_HIST_SUB_BITS - (unsigned)__builtin_clzll(value | (SUB_COUNT - 1));

	return bucket * (SUB_COUNT / 2) + (unsigned)(value >> bucket);
}

uint64_t ft_histogram_slot_value(unsigned slot)
{
	unsigned bucket = slot < SUB_COUNT ? 0 : slot / (SUB_COUNT / 2) - 1;
	uint64_t sub = slot - bucket * (SUB_COUNT / 2);

	return ((sub + 1) << bucket) - 1;
}

void ft_histogram_reset(struct ft_histogram *h)
{
	memset(h, 0, sizeof(*h));
}

void ft_histogram_add_equal(struct ft_histogram *h, uint64_t value_ns, uint32_t times)
{
	uint64_t v = value_ns > LARGEST ? LARGEST : value_ns;

	h->slots[slot_of(v)] += times;
	if (v < h->min_ns || !h->count)
		h->min_ns = v;
	if (v > h->max_ns)
		h->max_ns = v;
	h->count += times;
	h->sum_ns += (double)v * times;
	h->sum_squares += (double)v * (double)v * times;
}

void ft_histogram_merge(struct ft_histogram *into, const struct ft_histogram *from)
{
	if (!from->count)
		return;
	if (from->min_ns < into->min_ns || !into->count)
		into->min_ns = from->min_ns;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
	into->count += from->count;
	into->sum_ns += from->sum_ns;
	into->sum_squares += from->sum_squares;
	for (unsigned i = 0; i < FT_HIST_SLOTS; i++)
		into->slots[i] += from->slots[i];
}

uint64_t ft_histogram_percentile(const struct ft_histogram *h, double percentile)
{
	/* Nearest rank: the smallest value that at least this share of the values does not exceed. The factor
	 * keeps 99.9 % of 1000, which binary fractions make 999.0000000000001, at rank 999. */
	double rank = ceil(percentile * (double)h->count / 100.0 * (1 - 1e-12));
	uint64_t wanted = rank >= 1 ? (uint64_t)rank : 1, seen = 0;

	if (!h->count)
		return 0;
	for (unsigned i = 0; i < FT_HIST_SLOTS; i++) {
		seen += h->slots[i];
		if (seen >= wanted)
			return ft_histogram_slot_value(i) < h->max_ns ? ft_histogram_slot_value(i)
								      : h->max_ns;
	}
	return h->max_ns;
}

double ft_histogram_mean(const struct ft_histogram *h)
{
	return h->count ? h->sum_ns / (double)h->count : 0;
}

double ft_histogram_stddev(const struct ft_histogram *h)
{
	double mean = ft_histogram_mean(h), variance;

	if (!h->count)
		return 0;
	variance = h->sum_squares / (double)h->count - mean * mean;
	return variance > 0 ? sqrt(variance) : 0; /* rounding may give slightly less than zero */
}

/* SPDX-License-Identifier: MIT */
/* From counts to figures, and the exact percentiles.
 *
 * The histogram says in which of its slots each wanted rank lies. One pass over the log then counts, per
 * wanted slot, how many values lie below it and how many at each nanosecond in it. That needs memory for a
 * few slots only, however long the run was, and no sorting.
 */
#include "figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recording/recording.h"

const double percentile_points[PERCENTILES] = {50, 90, 95, 99, 99.9, 99.99};
const char *const percentile_names[PERCENTILES] = {"p50", "p90", "p95", "p99", "p99.9", "p99.99"};

/* A histogram slot, and the values found in it. A slot of values above 2^28 ns is wider than FINE_BINS
 * nanoseconds; a bin is then 2^shift of them. */
enum { FINE_BINS = 1 << 17 };

struct fine_slot {
	uint64_t low, high;
	uint64_t gap; /* values between the slot before and this one */
	unsigned shift;
	uint32_t *bins;
};

struct fine {
	struct fine_slot slots[PERCENTILES];
	unsigned count;
	uint64_t values;
};

static void figures_of(struct operation_figures *f, const struct operation_stats *s)
{
	f->used = true;
	f->bytes = s->bytes;
	for (int i = 0; i < STATUSES; i++) {
		f->status[i] = s->status[i];
		f->requests += s->status[i];
		if (status_is_error((unsigned)i))
			f->errors += s->status[i];
		if (status_has_latency((unsigned)i))
			f->timed += s->status[i];
	}
	f->min_ns = s->latency.min_ns;
	f->max_ns = s->latency.max_ns;
	f->mean_ns = ft_histogram_mean(&s->latency);
	f->stddev_ns = ft_histogram_stddev(&s->latency);
	for (int i = 0; i < PERCENTILES; i++)
		f->percentile_ns[i] = ft_histogram_percentile(&s->latency, percentile_points[i]);
}

/* All operations as one. NULL when memory is short. */
static struct operation_stats *total_of(const struct stats *s)
{
	struct operation_stats *total = calloc(1, sizeof(*total));

	for (int i = 0; total && i < OPERATIONS; i++) {
		if (!s->operations[i])
			continue;
		total->bytes += s->operations[i]->bytes;
		for (int k = 0; k < STATUSES; k++)
			total->status[k] += s->operations[i]->status[k];
		ft_histogram_merge(&total->latency, &s->operations[i]->latency);
	}
	return total;
}

void figures_from_stats(struct figures *f, const struct stats *s, double seconds)
{
	struct operation_stats *total = total_of(s);

	memset(f, 0, sizeof(*f));
	f->seconds = seconds;
	for (int i = 0; i < OPERATIONS; i++)
		if (s->operations[i])
			figures_of(&f->operations[i], s->operations[i]);
	if (total)
		figures_of(&f->operations[TOTAL], total);
	free(total);
	memcpy(f->errors, s->errors, sizeof(f->errors));
	f->sent = s->sent;
	f->late_max_ns = s->late_max_ns;
	f->late_mean_ns = s->sent ? (double)s->late_sum_ns / (double)s->sent : 0;
}

/* The histogram slots that hold the percentiles found so far, ascending, each once. */
static bool fine_init(struct fine *fine, const struct operation_figures *f)
{
	memset(fine, 0, sizeof(*fine));
	for (int i = 0; i < PERCENTILES; i++) {
		uint64_t value = f->percentile_ns[i];
		unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
		unsigned width = bits > FT_HIST_SUB_BITS ? bits - FT_HIST_SUB_BITS : 0;
		uint64_t low = value >> width << width;
		struct fine_slot *slot = &fine->slots[fine->count];

		if (fine->count > 0 && slot[-1].low == low)
			continue;
		slot->low = low;
		slot->high = low + ((uint64_t)1 << width) - 1;
		slot->shift = width > 17 ? width - 17 : 0;
		slot->bins = calloc((size_t)1 << (width - slot->shift), sizeof(*slot->bins));
		if (!slot->bins)
			return false;
		fine->count++;
	}
	return true;
}

static void fine_free(struct fine *fine)
{
	for (unsigned i = 0; i < fine->count; i++)
		free(fine->slots[i].bins);
}

static inline void fine_add(struct fine *fine, uint64_t value)
{
	struct fine_slot *slot = fine->slots, *end = slot + fine->count;

	fine->values++;
	while (slot < end && value > slot->high)
		slot++;
	if (slot == end)
		return;
	if (value < slot->low)
		slot->gap++;
	else
		slot->bins[(value - slot->low) >> slot->shift]++;
}

/* The value of a rank (from 1): nearest-rank percentiles, as ft_histogram_percentile has them. */
static uint64_t fine_value(const struct fine *fine, uint64_t rank)
{
	uint64_t seen = 0;

	for (unsigned i = 0; i < fine->count; i++) {
		const struct fine_slot *slot = &fine->slots[i];
		size_t bins = (size_t)((slot->high - slot->low) >> slot->shift) + 1;

		seen += slot->gap;
		for (size_t k = 0; k < bins; k++) {
			seen += slot->bins[k];
			if (seen >= rank)
				return slot->low + ((uint64_t)k << slot->shift);
		}
	}
	return 0;
}

static uint64_t rank_of(double percentile, uint64_t count)
{
	double rank = ceil(percentile * (double)count / 100.0 * (1 - 1e-12));

	return rank >= 1 ? (uint64_t)rank : 1;
}

struct decoded {
	uint64_t intended_ns[FT_REQUEST_BLOCK], end_ns[FT_REQUEST_BLOCK];
	uint8_t op[FT_REQUEST_BLOCK], status[FT_REQUEST_BLOCK];
};

static void read_log(struct fine *fine, bool single, struct ft_reader *reader, uint64_t from_ns,
		     uint64_t to_ns, struct decoded *d)
{
	const struct ft_request_columns columns = {
	    .intended_ns = d->intended_ns, .end_ns = d->end_ns, .op = d->op, .status = d->status};
	struct ft_block block;

	while (ft_reader_next(reader, &block)) {
		int count;

		if (block.kind != FT_BLOCK_REQUEST)
			continue;
		count = ft_requests_decode(block.payload, block.bytes, block.count, &columns);
		for (int i = 0; i < count; i++) {
			uint64_t latency = d->end_ns[i] - d->intended_ns[i];

			if (d->end_ns[i] < from_ns || d->end_ns[i] > to_ns || d->op[i] >= OPERATIONS ||
			    !status_has_latency(d->status[i]))
				continue;
			if (!single)
				fine_add(&fine[d->op[i]], latency);
			fine_add(&fine[TOTAL], latency);
		}
	}
}

static void take_exact(struct operation_figures *f, const struct fine *fine)
{
	for (int i = 0; i < PERCENTILES; i++) {
		uint64_t value = fine_value(fine, rank_of(percentile_points[i], f->timed));
		if (value)
			f->percentile_ns[i] = value;
	}
}

void figures_from_log(struct figures *f, const struct stats *s, const char *path, uint64_t from_ns,
		      uint64_t to_ns)
{
	struct fine fine[OPERATIONS + 1] = {0};
	struct decoded *decoded = malloc(sizeof(*decoded));
	struct ft_reader *reader = NULL;
	char error[256];
	int used = 0;
	bool good = decoded && ft_reader_open(&reader, path, error, sizeof(error)) == 0;

	for (int i = 0; i < OPERATIONS; i++)
		used += s->operations[i] != NULL;
	for (int i = 0; i <= TOTAL && good; i++)
		if (f->operations[i].used && (i == TOTAL || used > 1))
			good = fine_init(&fine[i], &f->operations[i]);
	if (good)
		read_log(fine, used == 1, reader, from_ns, to_ns, decoded);
	for (int i = 0; i <= TOTAL && good; i++)
		if (fine[i].count > 0)
			good = fine[i].values == f->operations[i].timed;
	for (int i = 0; i <= TOTAL && good; i++) {
		if (!f->operations[i].used || !f->operations[i].timed)
			continue;
		take_exact(&f->operations[i], &fine[used == 1 ? TOTAL : i]);
	}
	f->exact = good;
	for (int i = 0; i <= TOTAL; i++)
		fine_free(&fine[i]);
	ft_reader_close(reader);
	free(decoded);
}

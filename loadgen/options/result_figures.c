/* SPDX-License-Identifier: MIT */
/* Computes figures and exact percentiles. The histogram shows which slot contains each wanted rank. One pass
 * over the log then counts, per wanted slot, the values below it and the values at each nanosecond in it.
 * That needs memory for a few slots only, however long the run was, and no sorting. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/text.h"
#include "loadgen/results.h"
#include "recording/recording.h"

bool percentiles_add(struct wanted_figures *w, double point)
{
	uint32_t i = w->percentile_count;

	for (uint32_t k = 0; k < w->percentile_count; k++)
		if (w->points[k] == point)
			return true;
	if (w->percentile_count == PERCENTILES_MAX)
		return false;
	for (; i > 0 && w->points[i - 1] > point; i--) {
		w->points[i] = w->points[i - 1];
		memcpy(w->names[i], w->names[i - 1], sizeof(w->names[i]));
	}
	w->points[i] = point;
	snprintf(w->names[i], sizeof(w->names[i]), "p%.7g", point);
	w->percentile_count++;
	return true;
}

bool percentiles_parse(const char *text, struct wanted_figures *w)
{
	char *copy = strdup(text), *rest = copy, *part;
	bool good = copy != NULL;
	double point;

	w->percentile_count = 0;
	while (good && (part = strsep(&rest, ",")))
		good = parse_positive(part, 100, &point) && percentiles_add(w, point);
	free(copy);
	return good;
}

bool buckets_parse(const char *text, struct wanted_figures *w)
{
	char *copy = strdup(strcmp(text, "default") == 0 ? "25ms,50ms,100ms,200ms,300ms,400ms,500ms" : text);
	char *rest = copy, *part;
	bool good = copy != NULL;

	w->bucket_count = 0;
	while (good && (part = strsep(&rest, ","))) {
		uint32_t i = w->bucket_count;
		good = i < BUCKETS_MAX && parse_duration(part, TIME_ANY, TIME_S, &w->bucket_ns[i]) &&
		       w->bucket_ns[i] > (i ? w->bucket_ns[i - 1] : 0);
		w->bucket_count += good;
	}
	free(copy);
	return good;
}

/* A histogram slot, and the values found in it. A slot of values above 2^28 ns is wider than FINE_BINS
 * nanoseconds; a bin is then 2^shift of them. */
enum { FINE_BINS = 1 << 17 };

struct fine_slot {
	uint64_t low, high;
	uint64_t gap; /* values between the previous slot and this one */
	unsigned shift;
	uint32_t *bins;
};

struct fine {
	struct fine_slot slots[PERCENTILES_MAX];
	unsigned count;
	uint64_t values;
	uint64_t buckets[BUCKETS_MAX + 1];
};

/* The bucket of a latency. */
static inline uint32_t bucket_of(const struct wanted_figures *w, uint64_t value_ns)
{
	uint32_t i = 0;

	while (i < w->bucket_count && value_ns > w->bucket_ns[i])
		i++;
	return i;
}

static void figures_of(struct operation_figures *f, const struct operation_stats *s,
		       const struct wanted_figures *wanted)
{
	f->used = true;
	f->bytes = s->bytes;
	for (int i = 0; i < STATUSES; i++) {
		f->status[i] = s->status[i];
		f->requests += s->status[i];
		if (status_is_error((unsigned)i))
			f->errors += s->status[i];
	}
	f->min_ns = s->latency.min_ns;
	f->max_ns = s->latency.max_ns;
	f->mean_ns = ft_histogram_mean(&s->latency);
	f->stddev_ns = ft_histogram_stddev(&s->latency);
	for (uint32_t i = 0; i < wanted->percentile_count; i++)
		f->percentile_ns[i] = ft_histogram_percentile(&s->latency, wanted->points[i]);
	for (uint32_t i = 0; i < FT_HIST_SLOTS && wanted->bucket_count; i++)
		if (s->latency.slots[i])
			f->buckets[bucket_of(wanted, ft_histogram_slot_value(i))] += s->latency.slots[i];
}

static void figures_of_arrivals(struct result_figures *f, const struct arrival_stats *a)
{
	const struct ft_histogram *h = &a->latency;

	f->arrivals.count = h->count;
	if (!h->count)
		return;
	f->arrivals.min_ns = h->min_ns;
	f->arrivals.max_ns = h->max_ns;
	f->arrivals.mean_ns = ft_histogram_mean(h);
	f->arrivals.stddev_ns = ft_histogram_stddev(h);
	f->arrivals.unread_mean_ns = (double)a->unread_sum_ns / (double)h->count;
	f->arrivals.unread_max_ns = a->unread_max_ns;
	for (uint32_t i = 0; i < f->wanted->percentile_count; i++)
		f->arrivals.percentile_ns[i] = ft_histogram_percentile(h, f->wanted->points[i]);
}

void figures_from_stats(struct result_figures *f, const struct stats *s, const struct wanted_figures *wanted,
			double seconds)
{
	static struct operation_stats total; /* too large for the stack; only the main thread reports */

	memset(f, 0, sizeof(*f));
	f->wanted = wanted;
	f->seconds = seconds;
	for (int i = 0; i < OPERATIONS_MAX; i++) {
		if (!s->operations[i])
			continue;
		figures_of(&f->operations[i], s->operations[i], wanted);
		f->used++;
	}
	stats_total(s, &total);
	figures_of(&f->operations[TOTAL], &total, wanted);
	if (s->arrivals)
		figures_of_arrivals(f, s->arrivals);
	memcpy(f->errors, s->errors, sizeof(f->errors));
	memcpy(f->statuses, s->statuses, sizeof(f->statuses));
	f->broken = s->broken;
	f->connects_failed = s->connects_failed;
	f->pushes = s->pushes;
	f->sent = s->sent;
	f->late_max_ns = s->late_max_ns;
	f->late_mean_ns = s->sent ? (double)s->late_sum_ns / (double)s->sent : 0;
}

/* The histogram slots that hold the percentiles found so far, ascending, each once. */
static bool fine_init(struct fine *fine, const struct operation_figures *f, uint32_t percentiles)
{
	memset(fine, 0, sizeof(*fine));
	for (uint32_t i = 0; i < percentiles; i++) {
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

static inline void fine_add(struct fine *fine, uint64_t value, const struct wanted_figures *wanted)
{
	struct fine_slot *slot = fine->slots, *end = slot + fine->count;

	fine->values++;
	if (wanted->bucket_count)
		fine->buckets[bucket_of(wanted, value)]++;
	while (slot < end && value > slot->high)
		slot++;
	if (slot == end)
		return;
	if (value < slot->low)
		slot->gap++;
	else
		slot->bins[(value - slot->low) >> slot->shift]++;
}

/* The value of a rank (from 1): nearest-rank percentiles, as in ft_histogram_percentile. */
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
	uint64_t intended_ns[FT_REQUEST_BLOCK], end_ns[FT_REQUEST_BLOCK], latency_ns[FT_REQUEST_BLOCK];
	uint8_t op[FT_REQUEST_BLOCK];
};

/* Latencies and ops of a block's requests that were due at or after from_ns (0: all). Returns their number.
 */
static int latencies(const struct ft_block *block, uint64_t from_ns, struct decoded *d)
{
	const struct ft_request_columns columns = {
	    .intended_ns = d->intended_ns, .end_ns = d->end_ns, .op = d->op};
	int count, selected = 0;

	if (!from_ns)
		return ft_requests_latencies(block->payload, block->bytes, block->count, d->latency_ns,
					     d->op);
	count = ft_requests_decode(block->payload, block->bytes, block->count, &columns);
	for (int i = 0; i < count; i++) {
		if (d->intended_ns[i] < from_ns)
			continue;
		d->latency_ns[selected] = d->end_ns[i] - d->intended_ns[i];
		d->op[selected++] = d->op[i];
	}
	return selected;
}

/* One pass over the log. `fine` is by operation; a run of one operation has only its total. */
static void read_log(struct fine *fine, const struct result_figures *f, struct ft_reader *reader,
		     uint64_t from_offset, uint64_t from_ns, struct decoded *d)
{
	struct ft_block block;

	while (ft_reader_next(reader, &block)) {
		int count;

		if (block.kind != FT_BLOCK_REQUEST || block.offset < from_offset)
			continue;
		count = latencies(&block, from_ns, d);
		for (int i = 0; i < count; i++) {
			if (f->used > 1 && d->op[i] < OPERATIONS_MAX)
				fine_add(&fine[d->op[i]], d->latency_ns[i], f->wanted);
			fine_add(&fine[TOTAL], d->latency_ns[i], f->wanted);
		}
	}
}

static void take_exact(struct operation_figures *f, const struct fine *fine,
		       const struct wanted_figures *wanted)
{
	for (uint32_t i = 0; i < wanted->percentile_count; i++) {
		uint64_t value = fine_value(fine, rank_of(wanted->points[i], f->requests));
		if (value)
			f->percentile_ns[i] = value;
	}
	memcpy(f->buckets, fine->buckets, sizeof(f->buckets));
}

void figures_from_log(struct result_figures *f, const char *path, uint64_t from_offset, uint64_t from_ns)
{
	struct fine *fine = calloc(OPERATIONS_MAX + 1, sizeof(*fine));
	struct decoded *decoded = malloc(sizeof(*decoded));
	struct ft_reader *reader = NULL;
	char error[256];
	bool good = fine && decoded && ft_reader_open(&reader, path, error, sizeof(error)) == 0;

	for (int i = 0; i <= TOTAL && good; i++)
		if (f->operations[i].used && (i == TOTAL || f->used > 1))
			good = fine_init(&fine[i], &f->operations[i], f->wanted->percentile_count);
	if (good)
		read_log(fine, f, reader, from_offset, from_ns, decoded);
	for (int i = 0; i <= TOTAL && good; i++)
		if (fine[i].count > 0)
			good = fine[i].values == f->operations[i].requests;
	for (int i = 0; i <= TOTAL && good; i++)
		if (f->operations[i].used && f->operations[i].requests)
			take_exact(&f->operations[i], &fine[f->used == 1 ? TOTAL : i], f->wanted);
	f->exact = good;
	for (int i = 0; fine && i <= TOTAL; i++)
		fine_free(&fine[i]);
	free(fine);
	ft_reader_close(reader);
	free(decoded);
}

/* Limits use names of operations as the user wrote them, in any case. */

const struct operation_figures *limit_operation(const struct result_figures *f, const struct workload *w,
						const struct limit *l)
{
	if (!l->of[0])
		return &f->operations[TOTAL];
	for (uint32_t i = 0; i < w->operation_count; i++)
		if (f->operations[i].used && strcasecmp(w->operations[i].name, l->of) == 0)
			return &f->operations[i];
	return NULL;
}

double limit_figure(const struct result_figures *f, const struct operation_figures *o, const struct limit *l)
{
	if (!o)
		return NAN;
	switch (l->figure) {
	case LIMIT_PERCENTILE:
		for (uint32_t i = 0; i < f->wanted->percentile_count; i++)
			if (f->wanted->points[i] == l->percentile)
				return o->requests ? (double)o->percentile_ns[i] : NAN;
		return NAN;
	case LIMIT_AVERAGE:
		return o->requests ? o->mean_ns : NAN;
	case LIMIT_MINIMUM:
		return o->requests ? (double)o->min_ns : NAN;
	case LIMIT_MAXIMUM:
		return o->requests ? (double)o->max_ns : NAN;
	case LIMIT_STDDEV:
		return o->requests ? o->stddev_ns : NAN;
	case LIMIT_ERRORS:
		return (double)o->errors;
	case LIMIT_ERROR_PERCENT:
		return o->requests ? 100.0 * (double)o->errors / (double)o->requests : NAN;
	case LIMIT_MISSES:
		return (double)o->status[FT_STATUS_MISS];
	case LIMIT_RPS:
		return figures_per_second(f, (double)figures_answers(o));
	case LIMIT_REQUESTS:
		return (double)o->requests;
	case LIMIT_MB_PER_S:
		return figures_per_second(f, (double)o->bytes * 1e-6);
	case LIMIT_TOTAL:
	case LIMIT_SHARE:
	case LIMIT_EPISODES:
	case LIMIT_DROPS:
		break; /* limit_is_of_load */
	}
	return NAN;
}

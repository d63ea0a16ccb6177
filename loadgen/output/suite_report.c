/* SPDX-License-Identifier: MIT */
/* Comparing tests: a suite's final table, the spread of a repeated test, the text distribution, and
 * redis-benchmark's CSV. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report.h"

/* The index of a percentile among the figures wanted, or -1. */
static double wanted_percentile(const struct result_figures *f, double point)
{
	for (uint32_t i = 0; i < f->wanted->percentile_count; i++)
		if (f->wanted->points[i] == point)
			return (double)f->operations[TOTAL].percentile_ns[i];
	return -1;
}

void report_summarize(struct test_summary *s, const char *name, const struct result_figures *f)
{
	const struct operation_figures *t = &f->operations[TOTAL];

	memset(s, 0, sizeof(*s));
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->rps = figures_per_second(f, (double)figures_answers(t));
	s->mean_ns = t->mean_ns;
	s->p50_ns = wanted_percentile(f, 50);
	s->p99_ns = wanted_percentile(f, 99);
	s->p999_ns = wanted_percentile(f, 99.9);
	s->max_ns = (double)t->max_ns;
	s->requests = t->requests;
	s->errors = t->errors;
}

static void cell_ms(FILE *to, double ns)
{
	if (ns < 0)
		fprintf(to, "%12s", "-");
	else
		fprintf(to, "%12.3f", ns * 1e-6);
}

void report_suite(FILE *to, const struct test_summary *all, size_t count)
{
	fprintf(to, "\n%-20s%14s%12s%12s%12s%12s%12s%10s\n", "test", "requests/s", "average ms", "p50 ms",
		"p99 ms", "p99.9 ms", "maximum ms", "errors");
	for (size_t i = 0; i < count; i++) {
		const struct test_summary *s = &all[i];

		fprintf(to, "%-20s%14.0f", s->name, s->rps);
		cell_ms(to, s->mean_ns);
		cell_ms(to, s->p50_ns);
		cell_ms(to, s->p99_ns);
		cell_ms(to, s->p999_ns);
		cell_ms(to, s->max_ns);
		fprintf(to, "%10" PRIu64 "\n", s->errors);
	}
}

enum { FIGURES = 6 };
static const struct {
	const char *name, *key;
	size_t offset;
	bool high_is_good;
	double scale;
} repeated[FIGURES] = {
    {"requests/s", "requests_per_s", offsetof(struct test_summary, rps), true, 1},
    {"average ms", "mean_ns", offsetof(struct test_summary, mean_ns), false, 1e-6},
    {"p50 ms", "p50_ns", offsetof(struct test_summary, p50_ns), false, 1e-6},
    {"p99 ms", "p99_ns", offsetof(struct test_summary, p99_ns), false, 1e-6},
    {"p99.9 ms", "p99.9_ns", offsetof(struct test_summary, p999_ns), false, 1e-6},
    {"maximum ms", "max_ns", offsetof(struct test_summary, max_ns), false, 1e-6},
};

struct spread {
	double best, worst, mean, deviation;
};

static struct spread spread_of(const struct test_summary *all, size_t count, int which)
{
	struct spread s = {0};
	double sum = 0, squares = 0;

	for (size_t i = 0; i < count; i++) {
		double v;

		memcpy(&v, (const char *)&all[i] + repeated[which].offset, sizeof(v));
		sum += v;
		squares += v * v;
		if (i == 0 || (v > s.best) == repeated[which].high_is_good)
			s.best = v;
		if (i == 0 || (v < s.worst) == repeated[which].high_is_good)
			s.worst = v;
	}
	s.mean = sum / (double)count;
	s.deviation =
	    squares / (double)count > s.mean * s.mean
		? sqrt((squares / (double)count - s.mean * s.mean) * (double)count / (double)(count - 1))
		: 0;
	return s;
}

void report_repeats(FILE *to, const struct test_summary *all, size_t count)
{
	fprintf(to, "\n%s, %zu times%*s%14s%14s%14s%14s\n", all->name, count,
		(int)(10 - strlen(all->name) % 10), "", "best", "worst", "mean", "spread");
	for (int i = 0; i < FIGURES; i++) {
		struct spread s = spread_of(all, count, i);

		if (s.best < 0)
			continue;
		fprintf(to, "  %-18s%14.3f%14.3f%14.3f%14.3f\n", repeated[i].name, s.best * repeated[i].scale,
			s.worst * repeated[i].scale, s.mean * repeated[i].scale,
			s.deviation * repeated[i].scale);
	}
}

void report_repeats_json(json_t *j, const struct test_summary *all, size_t count)
{
	json_t *test = json_put_object(j, NULL);

	json_put_text(test, "name", all->name);
	json_put_count(test, "runs", count);
	for (int i = 0; i < FIGURES; i++) {
		struct spread s = spread_of(all, count, i);
		json_t *figure;

		if (s.best < 0)
			continue;
		figure = json_put_object(test, repeated[i].key);
		json_put_number(figure, "best", s.best);
		json_put_number(figure, "worst", s.worst);
		json_put_number(figure, "mean", s.mean);
		json_put_number(figure, "spread", s.deviation);
	}
}

void report_distribution(FILE *to, const struct stats *s)
{
	static struct operation_stats total; /* too large for the stack; only the main thread prints */
	const struct ft_histogram *all = &total.latency;
	double left = 100;

	stats_total(s, &total);
	if (!all->count)
		return;
	fprintf(to, "\nlatency distribution\n");
	fprintf(to, "%12.3f %% <= %.3f ms\n", 0.0, (double)all->min_ns * 1e-6);
	for (;;) {
		left /= 2;
		fprintf(to, "%12.6f %% <= %.3f ms\n", 100 - left,
			(double)ft_histogram_percentile(all, 100 - left) * 1e-6);
		if (left * (double)all->count < 100)
			break;
	}
	fprintf(to, "%12.3f %% <= %.3f ms\n", 100.0, (double)all->max_ns * 1e-6);
}

void report_csv_header(FILE *to)
{
	fprintf(
	    to,
	    "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\","
	    "\"p99_latency_ms\",\"max_latency_ms\"\n");
}

void report_csv_row(FILE *to, const char *name, const struct result_figures *f)
{
	const struct operation_figures *t = &f->operations[TOTAL];

	fprintf(to, "\"%s\",\"%.2f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\"\n", name,
		figures_per_second(f, (double)figures_answers(t)), t->mean_ns * 1e-6,
		(double)t->min_ns * 1e-6, wanted_percentile(f, 50) * 1e-6, wanted_percentile(f, 95) * 1e-6,
		wanted_percentile(f, 99) * 1e-6, (double)t->max_ns * 1e-6);
}

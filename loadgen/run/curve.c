/* SPDX-License-Identifier: MIT */
/* The chart of a search: latencies by rate.
 *
 * Rates have at most four digits (loadgen/search), so equal rates compare equal. */
#include "loadgen/output.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { LATENCIES = 5 };
static const struct {
	const char *key;
	size_t offset;
} latencies[LATENCIES] = {
    {"mean_ns", offsetof(struct test_summary, mean_ns)}, {"p50_ns", offsetof(struct test_summary, p50_ns)},
    {"p99_ns", offsetof(struct test_summary, p99_ns)},	 {"p99.9_ns", offsetof(struct test_summary, p999_ns)},
    {"max_ns", offsetof(struct test_summary, max_ns)},
};

/* Negative: a percentile that was not asked for. */
static double latency(const struct curve_point *p, size_t which)
{
	double ns;

	memcpy(&ns, (const char *)&p->figures + latencies[which].offset, sizeof(ns));
	return ns;
}

/* ---- points ---- */

static int by_rate(const void *a, const void *b)
{
	const struct curve_run *x = *(const struct curve_run *const *)a;
	const struct curve_run *y = *(const struct curve_run *const *)b;

	return (x->rate > y->rate) - (x->rate < y->rate);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of the number at `offset` in each of `count` runs; of an even count, the lower middle. */
static double median(const struct curve_run *const *runs, uint32_t count, size_t offset)
{
	double values[CURVE_POINTS_MAX];

	if (count > CURVE_POINTS_MAX)
		count = CURVE_POINTS_MAX;
	for (uint32_t i = 0; i < count; i++)
		memcpy(&values[i], (const char *)runs[i] + offset, sizeof(double));
	qsort(values, count, sizeof(*values), by_value);
	return values[(count - 1) / 2];
}

static void add_point(struct curve *c, const struct curve_run *const *runs, uint32_t count)
{
	struct curve_point *p = &c->points[c->count++];

	*p = (struct curve_point){.rate = runs[0]->rate, .runs = count};
	for (size_t i = 0; i < LATENCIES; i++) {
		double value = median(runs, count, offsetof(struct curve_run, figures) + latencies[i].offset);

		memcpy((char *)&p->figures + latencies[i].offset, &value, sizeof(value));
	}
	p->figures.rps =
	    median(runs, count, offsetof(struct curve_run, figures) + offsetof(struct test_summary, rps));
	p->busiest = median(runs, count, offsetof(struct curve_run, busiest));
	for (uint32_t i = 0; i < count; i++) {
		p->held += runs[i]->held;
		p->figures.requests += runs[i]->figures.requests;
		p->figures.errors += runs[i]->figures.errors;
	}
}

void curve_make(struct curve *c, const struct curve_run *runs, uint32_t count, double highest)
{
	const struct curve_run **sorted = calloc(count + 1, sizeof(*sorted));
	uint32_t first = 0;

	*c = (struct curve){.highest = highest};
	for (uint32_t i = 0; sorted && i < count; i++)
		sorted[i] = &runs[i];
	if (sorted)
		qsort(sorted, count, sizeof(*sorted), by_rate);
	for (uint32_t i = 1; sorted && i <= count && c->count < CURVE_POINTS_MAX; i++) {
		if (i < count && sorted[i]->rate == sorted[first]->rate)
			continue;
		add_point(c, sorted + first, i - first);
		first = i;
	}
	free(sorted);
}

/* ---- output ---- */

static void cell(FILE *to, double ns)
{
	if (ns < 0)
		fprintf(to, "%11s", "-");
	else
		fprintf(to, "%11.3f", ns * 1e-6);
}

void curve_table(FILE *to, const struct curve *c)
{
	bool failed = false;

	for (uint32_t i = 0; i < c->count; i++)
		failed |= c->points[i].figures.errors > 0;
	fprintf(to, "\n%12s%12s%11s%11s%11s%11s%9s%*s  %s\n", "rate/s", "requests/s", "p50 ms", "p99 ms",
		"p99.9 ms", "max ms", "client", failed ? 11 : 0, failed ? "errors" : "", "held");
	for (uint32_t i = 0; i < c->count; i++) {
		const struct curve_point *p = &c->points[i];

		fprintf(to, "%12.10g%12.0f", p->rate, p->figures.rps);
		cell(to, p->figures.p50_ns);
		cell(to, p->figures.p99_ns);
		cell(to, p->figures.p999_ns);
		cell(to, p->figures.max_ns);
		fprintf(to, "%7.0f %%", p->busiest * 100);
		if (failed)
			fprintf(to, "%11" PRIu64, p->figures.errors);
		fprintf(to, "  %u of %u%s\n", p->held, p->runs, p->rate == c->highest ? "  <- highest" : "");
	}
}

void curve_csv(FILE *to, const struct curve *c)
{
	fprintf(to,
		"rate,requests_per_s,mean_ms,p50_ms,p99_ms,p99.9_ms,max_ms,errors,client_busy,runs,held\n");
	for (uint32_t i = 0; i < c->count; i++) {
		const struct curve_point *p = &c->points[i];

		fprintf(to, "%.10g,%.1f", p->rate, p->figures.rps);
		for (size_t k = 0; k < LATENCIES; k++) {
			double ns = latency(p, k);

			fprintf(to, ns < 0 ? "," : ",%.6f", ns * 1e-6);
		}
		fprintf(to, ",%" PRIu64 ",%.4f,%u,%u\n", p->figures.errors, p->busiest, p->runs, p->held);
	}
}

void curve_json(json_t *array, const struct curve *c)
{
	for (uint32_t i = 0; i < c->count; i++) {
		const struct curve_point *p = &c->points[i];
		json_t *j = json_put_object(array, NULL);

		json_put_number(j, "rate", p->rate);
		json_put_number(j, "requests_per_s", p->figures.rps);
		for (size_t k = 0; k < LATENCIES; k++)
			if (latency(p, k) >= 0)
				json_put_number(j, latencies[k].key, latency(p, k));
		json_put_count(j, "requests", p->figures.requests);
		json_put_count(j, "errors", p->figures.errors);
		json_put_number(j, "client_busy", p->busiest);
		json_put_count(j, "runs", p->runs);
		json_put_count(j, "held", p->held);
	}
}

/* ---- the chart ---- */

bool curve_can_draw(void)
{
	FILE *gnuplot = popen("gnuplot -d 2>/dev/null", "w");

	return gnuplot && pclose(gnuplot) == 0;
}

/* Between single quotes gnuplot interprets only the quote itself, which is doubled. */
static void quoted(FILE *to, const char *text)
{
	fputc('\'', to);
	for (; *text; text++) {
		if (*text == '\'')
			fputc('\'', to);
		fputc((unsigned char)*text < ' ' ? ' ' : *text, to);
	}
	fputc('\'', to);
}

bool curve_svg(const char *path, const struct curve *c, const char *title)
{
	static const struct {
		const char *name, *colour;
		int column;
	} lines[] = {{"p50", "#1a56c4", 2}, {"p99", "#d9730d", 3}, {"p99.9", "#b01e68", 4}};
	FILE *gnuplot = popen("gnuplot -d", "w");

	if (!gnuplot)
		return false;
	fprintf(gnuplot, "set encoding utf8\n$curve << EOD\n");
	for (uint32_t i = 0; i < c->count; i++)
		fprintf(gnuplot, "%.10g %.6g %.6g %.6g\n", c->points[i].rate,
			c->points[i].figures.p50_ns * 1e-6, c->points[i].figures.p99_ns * 1e-6,
			c->points[i].figures.p999_ns * 1e-6);
	fprintf(gnuplot, "EOD\nset terminal svg size 720,420 noenhanced font 'sans-serif,12' background "
			 "'#ffffff'\nset output ");
	quoted(gnuplot, path);
	fprintf(gnuplot, "\nset title ");
	quoted(gnuplot, title);
	fprintf(gnuplot, "\nset xlabel 'requests due per second'\nset ylabel 'latency (ms)'\nset logscale y\n"
			 "set format x '%%.0f'\nset format y '%%g'\nset grid\nset key left top\n"
			 "set xrange [0:*]\nset border 3\nset tics nomirror\n");
	if (c->highest > 0)
		fprintf(gnuplot,
			"set arrow from %.10g, graph 0 to %.10g, graph 1 nohead dt 2 lc rgb '#2f9e44'\n"
			"set label '%.10g/s' at %.10g, graph 0.04 right offset -0.5,0\n",
			c->highest, c->highest, c->highest, c->highest);
	fprintf(gnuplot, "plot");
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		fprintf(gnuplot,
			"%s $curve using 1:($%d > 0 ? $%d : NaN) with linespoints lw 2 pt 7 ps 0.5 lc "
			"rgb '%s' title '%s'",
			i ? "," : "", lines[i].column, lines[i].column, lines[i].colour, lines[i].name);
	fprintf(gnuplot, "\n");
	return pclose(gnuplot) == 0;
}

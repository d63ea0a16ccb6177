/* SPDX-License-Identifier: MIT */
/* The final tables: of a test, of each server, of a suite.
 *
 * The table has a row per figure and a column per operation, so that it fits a terminal with every
 * percentile, and each row names its unit. Latencies are in milliseconds with three decimals. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "loadgen/nodes.h"
#include "loadgen/output.h"
#include "recording/json_block.h"

const char *const run_end_names[] = {"done", "interrupted", "server lost", "errors"};

/* 1234567 -> "1,234,567". */
static const char *grouped(char out[32], uint64_t value)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, value), k = 0;

	for (int i = 0; i < n; i++) {
		if (i > 0 && (n - i) % 3 == 0)
			out[k++] = ',';
		out[k++] = digits[i];
	}
	out[k] = 0;
	return out;
}

void report_progress(FILE *to, bool tty, const char *name, double elapsed_s, const struct stats *second,
		     uint64_t errors, double eta_s)
{
	static struct operation_stats total; /* too large for the stack; only the main thread prints */
	const struct ft_histogram *latency = &total.latency;
	char number[32], eta[32] = "", error_count[32] = "", line[256];
	const size_t columns = tty ? terminal_columns(STDERR_FILENO, 80) : sizeof(line);

	if (second->span_ns == 0)
		return;
	stats_total(second, &total);
	if (eta_s >= 0)
		snprintf(eta, sizeof(eta), "  ETA %.0f s", eta_s);
	if (errors || columns >= 80)
		snprintf(error_count, sizeof(error_count), "  errors %" PRIu64, errors);
	const char *rate =
	    grouped(number, (uint64_t)((double)stats_requests(second) * 1e9 / (double)second->span_ns + 0.5));
	/* The longest form that fits. */
	for (int form = 0; form < 3; form++) {
		const double p50_ms = (double)ft_histogram_percentile(latency, 50) * 1e-6,
			     p99_ms = (double)ft_histogram_percentile(latency, 99) * 1e-6,
			     max_ms = (double)latency->max_ns * 1e-6;
		char text[96] = "no answer";

		if (latency->count > 0 && form == 0)
			snprintf(text, sizeof(text), "p50 %.3f ms  p99 %.3f ms  max %.3f ms", p50_ms, p99_ms,
				 max_ms);
		else if (latency->count > 0)
			snprintf(text, sizeof(text), "max %.3f ms", max_ms);
		if (form < 2)
			snprintf(line, sizeof(line), "%s  %.0f s  %s/s  %s%s%s", name, elapsed_s, rate, text,
				 error_count, eta);
		else
			snprintf(line, sizeof(line), "%.0f s  %s/s  %s", elapsed_s, rate, text);
		if (strlen(line) < columns)
			break;
	}
	fprintf(to, "%s%.*s%s", tty ? "\r\033[K" : "", (int)columns - 1, line, tty ? "" : "\n");
	fflush(to);
}

static size_t put(char *out, size_t size, size_t at, const char *text)
{
	int n = at < size ? snprintf(out + at, size - at, "%s", text) : 0;

	return at + (size_t)n;
}

void report_headline(char *out, size_t size, const struct options *o, const char *name)
{
	char part[128];
	size_t at = put(out, size, 0, name);

	if (o->mode == MODE_INTRINSIC) {
		snprintf(part, sizeof(part), " of %u thread%s every %.6g ms: delay of wake-ups on this host",
			 o->threads, o->threads == 1 ? "" : "s", (double)o->period_ns * 1e-6);
		put(out, size, at, part);
		return;
	}
	if (o->mixed) {
		snprintf(part, sizeof(part), " %u:%u", o->sets, o->gets);
		at = put(out, size, at, part);
	}
	snprintf(part, sizeof(part), ", %u connection%s, %u thread%s, %s %u, ", o->connections,
		 o->connections == 1 ? "" : "s", o->threads, o->threads == 1 ? "" : "s",
		 o->no_wait    ? "answers read later, at most"
		 : o->blocking ? "blocking calls of"
			       : "pipeline",
		 o->pipeline);
	at = put(out, size, at, part);
	if (o->delivery) {
		snprintf(part, sizeof(part), "%u consumer%s, %u %s%s, ", o->consumers,
			 o->consumers == 1 ? "" : "s", o->channels,
			 o->delivery == DELIVERY_PUBSUB ? "channel" : "queue", o->channels == 1 ? "" : "s");
		at = put(out, size, at, part);
	}
	value_sizes_describe(&o->sizes, part, sizeof(part));
	at = put(out, size, at, o->replay ? "recorded commands" : part);
	if (o->has_rate_profile)
		snprintf(part, sizeof(part), ", open loop, rate by profile (%s)",
			 o->arrival == ARRIVAL_POISSON ? "poisson" : "constant");
	else if (o->find_count)
		snprintf(part, sizeof(part), ", open loop, rate searched (%s)",
			 o->arrival == ARRIVAL_POISSON ? "poisson" : "constant");
	else if (o->rate > 0)
		snprintf(part, sizeof(part), ", open loop at %.10g/s (%s)", o->rate,
			 o->arrival == ARRIVAL_POISSON ? "poisson" : "constant");
	else if (o->replay && o->replay->timed && o->replay->speed != 1)
		snprintf(part, sizeof(part), " at %.6g times the recorded speed", o->replay->speed);
	else if (o->replay)
		snprintf(part, sizeof(part),
			 o->replay->timed ? " at the recorded speed" : " as fast as possible");
	else
		snprintf(part, sizeof(part), ", closed loop");
	at = put(out, size, at, part);
	if (options_tls(o))
		put(out, size, at, o->tls.insecure ? ", TLS not verified (--insecure)" : ", TLS");
}

enum { LABEL_WIDTH = 26, COLUMN_WIDTH = 18, SECONDS_TOLD = 10 };

static void row_count(FILE *to, const struct result_figures *f, const char *label,
		      uint64_t (*value)(const struct operation_figures *))
{
	char number[32];

	fprintf(to, "%-*s", LABEL_WIDTH, label);
	for (int i = 0; i <= TOTAL; i++)
		if (f->operations[i].used)
			fprintf(to, "%*s", COLUMN_WIDTH, grouped(number, value(&f->operations[i])));
	fputc('\n', to);
}

static uint64_t requests(const struct operation_figures *f)
{
	return f->requests;
}
static uint64_t errors(const struct operation_figures *f)
{
	return f->errors;
}
static uint64_t misses(const struct operation_figures *f)
{
	return f->status[FT_STATUS_MISS];
}

static void row_ms(FILE *to, const struct result_figures *f, const char *label,
		   double (*value_ns)(const struct operation_figures *, int), int which)
{
	fprintf(to, "  %-*s", LABEL_WIDTH - 2, label);
	for (int i = 0; i <= TOTAL; i++)
		if (f->operations[i].used)
			fprintf(to, "%*.3f", COLUMN_WIDTH, value_ns(&f->operations[i], which) * 1e-6);
	fputc('\n', to);
}

static double average(const struct operation_figures *f, int unused)
{
	return (void)unused, f->mean_ns;
}
static double minimum(const struct operation_figures *f, int unused)
{
	return (void)unused, (double)f->min_ns;
}
static double maximum(const struct operation_figures *f, int unused)
{
	return (void)unused, (double)f->max_ns;
}
static double deviation(const struct operation_figures *f, int unused)
{
	return (void)unused, f->stddev_ns;
}
static double percentile(const struct operation_figures *f, int which)
{
	return (double)f->percentile_ns[which];
}

/* "first 1.204 s, last 3.950 s" after the start. */
static void print_times(FILE *to, const struct error_times *t, uint64_t start_ns)
{
	fprintf(to, "   first %.3f s, last %.3f s\n", ((double)t->first_ns - (double)start_ns) * 1e-9,
		((double)t->last_ns - (double)start_ns) * 1e-9);
}

static void error_rows(FILE *to, const struct result_figures *f, uint64_t start_ns)
{
	char number[32], label[64];

	for (int k = 0; k < STATUSES; k++) {
		if (!status_is_error((unsigned)k) || !f->operations[TOTAL].status[k])
			continue;
		fprintf(to, "  %-*s", LABEL_WIDTH - 2, status_names[k]);
		for (int i = 0; i <= TOTAL; i++)
			if (f->operations[i].used)
				fprintf(to, "%*s", COLUMN_WIDTH, grouped(number, f->operations[i].status[k]));
		print_times(to, &f->statuses[k], start_ns);
		for (int i = 0; k == FT_STATUS_ERROR_REPLY && i < ERROR_WORDS && f->errors[i].times.count;
		     i++) {
			snprintf(label, sizeof(label), "    -%s", f->errors[i].word);
			fprintf(to, "%-*s", LABEL_WIDTH, label);
			for (uint32_t op = 0; op < f->used; op++)
				fprintf(to, "%*s", COLUMN_WIDTH, "");
			fprintf(to, "%*s", COLUMN_WIDTH, grouped(number, f->errors[i].times.count));
			print_times(to, &f->errors[i].times, start_ns);
			if (*f->errors[i].text)
				fprintf(to, "      first: %s\n", f->errors[i].text);
		}
	}
	if (f->operations[TOTAL].errors)
		fprintf(to, "  %-*s%*.4f %%\n", LABEL_WIDTH - 2, "failed share",
			(int)(COLUMN_WIDTH * (f->used + 1)) - 2,
			100.0 * (double)f->operations[TOTAL].errors / (double)f->operations[TOTAL].requests);
	if (f->pushes)
		fprintf(to, "%-*s%s\n", LABEL_WIDTH, "pushes received", grouped(number, f->pushes));
	if (f->broken)
		fprintf(to, "%-*s%s\n", LABEL_WIDTH, "connections lost", grouped(number, f->broken));
	if (f->connects_failed) {
		fprintf(to, "%-*s%s", LABEL_WIDTH, "connects refused", grouped(number, f->connects_failed));
		print_times(to, &f->statuses[FT_STATUS_REFUSED], start_ns);
	}
}

static void bucket_rows(FILE *to, const struct result_figures *f)
{
	const struct wanted_figures *w = f->wanted;
	const struct operation_figures *total = &f->operations[TOTAL];
	char number[32], label[48];
	uint64_t all = 0;

	for (uint32_t b = 0; b <= w->bucket_count; b++)
		all += total->buckets[b];
	if (w->bucket_count)
		fprintf(to, "requests by latency, and their share\n");
	for (uint32_t b = 0; b <= w->bucket_count && w->bucket_count; b++) {
		double from_ms = b ? (double)w->bucket_ns[b - 1] * 1e-6 : 0;
		if (b == w->bucket_count)
			snprintf(label, sizeof(label), "over %.6g ms", from_ms);
		else
			snprintf(label, sizeof(label), "(%.6g, %.6g ms]", from_ms,
				 (double)w->bucket_ns[b] * 1e-6);
		fprintf(to, "  %-*s", LABEL_WIDTH - 2, label);
		for (int i = 0; i <= TOTAL; i++)
			if (f->operations[i].used)
				fprintf(to, "%*s", COLUMN_WIDTH,
					grouped(number, f->operations[i].buckets[b]));
		fprintf(to, "%9.4g %%\n", all ? 100 * (double)total->buckets[b] / (double)all : 0);
	}
}

/* The time until answers arrived at this host, over all operations, in the column of totals. */
static void arrival_rows(FILE *to, const struct result_figures *f)
{
	int width = (int)(COLUMN_WIDTH * (f->used + 1));

	if (!f->arrivals.count)
		return;
	fprintf(to, "time until answers arrived (ms; at most 0.1 %% too high)\n");
	fprintf(to, "  %-*s%*.3f\n", LABEL_WIDTH - 2, "average", width, f->arrivals.mean_ns * 1e-6);
	fprintf(to, "  %-*s%*.3f\n", LABEL_WIDTH - 2, "minimum", width, (double)f->arrivals.min_ns * 1e-6);
	for (uint32_t i = 0; i < f->wanted->percentile_count; i++)
		fprintf(to, "  %-*s%*.3f\n", LABEL_WIDTH - 2, f->wanted->names[i], width,
			(double)f->arrivals.percentile_ns[i] * 1e-6);
	fprintf(to, "  %-*s%*.3f\n", LABEL_WIDTH - 2, "maximum", width, (double)f->arrivals.max_ns * 1e-6);
	fprintf(to, "%-*saverage %.3f, maximum %.3f\n", LABEL_WIDTH, "socket-buffer wait (ms)",
		f->arrivals.unread_mean_ns * 1e-6, (double)f->arrivals.unread_max_ns * 1e-6);
}

void report_table(FILE *to, const struct result_figures *f, const struct workload *w, const char *headline,
		  uint64_t start_ns)
{
	const struct operation_figures *total = &f->operations[TOTAL];
	char number[32];

	fprintf(to, "%s\n\n%-*s", headline, LABEL_WIDTH, "");
	for (int i = 0; i <= TOTAL; i++)
		if (f->operations[i].used)
			fprintf(to, "%*s", COLUMN_WIDTH, i == TOTAL ? "total" : w->operations[i].name);
	fputc('\n', to);
	row_count(to, f, "requests", requests);
	if (total->status[FT_STATUS_MISS])
		row_count(to, f, "misses", misses);
	row_count(to, f, "errors", errors);
	error_rows(to, f, start_ns);
	fprintf(to, "%-*s", LABEL_WIDTH, "requests/s");
	for (int i = 0; i <= TOTAL; i++)
		if (f->operations[i].used)
			fprintf(to, "%*s", COLUMN_WIDTH,
				grouped(number, (uint64_t)(figures_per_second(f, (double)figures_answers(
										     &f->operations[i])) +
							   0.5)));
	if (f->by_second.count >= SECONDS_TOLD)
		fprintf(to, "\n%-*s50 %% at or above %.0f requests/s, 99 %% at %.0f, all at %.0f",
			LABEL_WIDTH, "seconds", f->by_second.half, f->by_second.most, f->by_second.all);
	fprintf(to, "\n%-*s", LABEL_WIDTH, "MB/s");
	for (int i = 0; i <= TOTAL; i++)
		if (f->operations[i].used)
			fprintf(to, "%*.3f", COLUMN_WIDTH,
				figures_per_second(f, (double)f->operations[i].bytes * 1e-6));
	fprintf(to, "\nlatency (ms)\n");
	row_ms(to, f, "average", average, 0);
	row_ms(to, f, "minimum", minimum, 0);
	for (uint32_t i = 0; i < f->wanted->percentile_count; i++)
		row_ms(to, f, f->wanted->names[i], percentile, (int)i);
	row_ms(to, f, "maximum", maximum, 0);
	row_ms(to, f, "standard deviation", deviation, 0);
	arrival_rows(to, f);
	bucket_rows(to, f);
	if (f->late_max_ns)
		fprintf(to, "sent late (ms)            average %.3f, maximum %.3f\n", f->late_mean_ns * 1e-6,
			(double)f->late_max_ns * 1e-6);
	fprintf(to,
		"\n%.3f s; percentiles %s; client CPU %.3f s, %.3f s per million requests, busiest load "
		"thread %.0f %% of a core\n",
		f->seconds, f->exact ? "exact, from the log" : "at most 0.1 % too high, from the histogram",
		f->cpu_s, total->requests ? f->cpu_s / (double)total->requests * 1e6 : 0, f->busiest * 100);
}

/* Rows per server and per outage. A server without requests has no row, and redirects have columns only if
 * there were some. */

static const char *name_of(const struct nodes *n, uint32_t node)
{
	return nodes_at(n, (uint16_t)node)->name;
}

static uint64_t redirects(const struct stats *s, enum redirect why)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->node_count; i++)
		sum += s->nodes[i] ? s->nodes[i]->redirects[why] : 0;
	return sum;
}

static bool any_redirects(const struct stats *s)
{
	return redirects(s, REDIRECT_MOVED) + redirects(s, REDIRECT_ASK) + redirects(s, REDIRECT_LATER) > 0;
}

static double seconds_after(uint64_t t_ns, uint64_t start_ns)
{
	return ((double)t_ns - (double)start_ns) * 1e-9;
}

static void outage_row(FILE *to, const struct nodes *n, const struct outage *x, uint64_t start_ns)
{
	fprintf(to, "  %s: keys without a server ", name_of(n, x->node));
	if (x->last_ok_ns && x->first_ok_ns)
		fprintf(to, "for %.3f s: last answer at %.3f s, next answer at %.3f s from %s",
			seconds_after(x->first_ok_ns, x->last_ok_ns), seconds_after(x->last_ok_ns, start_ns),
			seconds_after(x->first_ok_ns, start_ns), name_of(n, x->after));
	else if (x->first_ok_ns)
		fprintf(to, "until %.3f s, when %s answered", seconds_after(x->first_ok_ns, start_ns),
			name_of(n, x->after));
	else
		fprintf(to, "from %.3f s to the end",
			seconds_after(x->last_ok_ns ? x->last_ok_ns : x->noticed_ns, start_ns));
	fprintf(to, "; %" PRIu64 " request%s failed, %" PRIu64 " %s delayed", x->failed,
		x->failed == 1 ? "" : "s", x->delayed, x->delayed == 1 ? "was" : "were");
	if (x->delayed)
		fprintf(to, ", the longest by %.3f s", (double)x->longest_ns * 1e-9);
	fputc('\n', to);
}

void node_report(FILE *to, const struct nodes *n, const struct stats *s, const struct outages *o,
		 uint64_t start_ns, double seconds)
{
	bool redirected = any_redirects(s);

	fprintf(to, "\n%-26s%14s%10s%12s%10s%10s%10s%s\n", "by server (ms)", "requests", "errors",
		"requests/s", "p50", "p99", "maximum", redirected ? "     moved       ask     later" : "");
	for (uint32_t i = 0; i < s->node_count; i++) {
		const struct node_stats *x = s->nodes[i];

		if (!x)
			continue;
		fprintf(to, "  %-24s%14" PRIu64 "%10" PRIu64 "%12.0f%10.3f%10.3f%10.3f", name_of(n, i),
			x->requests, x->errors, seconds > 0 ? (double)(x->requests - x->errors) / seconds : 0,
			(double)ft_histogram_percentile(&x->latency, 50) * 1e-6,
			(double)ft_histogram_percentile(&x->latency, 99) * 1e-6,
			(double)x->latency.max_ns * 1e-6);
		for (int k = 0; redirected && k < REDIRECTS; k++)
			fprintf(to, "%10" PRIu64, x->redirects[k]);
		fputc('\n', to);
	}
	if (redirected)
		fprintf(to,
			"%" PRIu64 " requests were sent again after a server redirected or refused them; "
			"their due times stayed the same\n",
			s->redirected);
	if (o->count)
		fprintf(to, "outages\n");
	for (uint32_t i = 0; i < o->count; i++)
		outage_row(to, n, &o->list[i], start_ns);
	if (o->lost)
		fprintf(to, "  and %" PRIu64 " more\n", o->lost);
}

static void outage_members(json_t *j, const struct nodes *n, const struct outage *x)
{
	json_put_text(j, "server", name_of(n, x->node));
	json_put_text(j, "after", x->first_ok_ns ? name_of(n, x->after) : "");
	json_put_count(j, "noticed_ns", x->noticed_ns);
	json_put_count(j, "last_ok_ns", x->last_ok_ns);
	json_put_count(j, "first_ok_ns", x->first_ok_ns);
	json_put_count(j, "gap_ns", x->last_ok_ns && x->first_ok_ns ? x->first_ok_ns - x->last_ok_ns : 0);
	json_put_count(j, "failed", x->failed);
	json_put_count(j, "delayed", x->delayed);
	json_put_count(j, "longest_ns", x->longest_ns);
}

void node_report_json(json_t *j, const struct nodes *n, const struct stats *s, const struct outages *o)
{
	json_t *list = json_put_array(j, "nodes"), *away;

	for (uint32_t i = 0; i < s->node_count; i++) {
		const struct node_stats *x = s->nodes[i];
		json_t *node;

		if (!x)
			continue;
		node = json_put_object(list, NULL);
		json_put_text(node, "server", name_of(n, i));
		json_put_count(node, "requests", x->requests);
		json_put_count(node, "errors", x->errors);
		json_put_count(node, "p50_ns", ft_histogram_percentile(&x->latency, 50));
		json_put_count(node, "p99_ns", ft_histogram_percentile(&x->latency, 99));
		json_put_count(node, "p99.9_ns", ft_histogram_percentile(&x->latency, 99.9));
		json_put_count(node, "max_ns", x->latency.max_ns);
		for (int k = 0; k < REDIRECTS; k++)
			json_put_count(node, redirect_names[k], x->redirects[k]);
	}
	away = json_put_object(j, "redirects");
	for (int k = 0; k < REDIRECTS; k++)
		json_put_count(away, redirect_names[k], redirects(s, (enum redirect)k));
	json_put_count(away, "requests", s->redirected);
	list = json_put_array(j, "outages");
	for (uint32_t i = 0; i < o->count; i++)
		outage_members(json_put_object(list, NULL), n, &o->list[i]);
}

void node_report_notes(struct ft_writer *w, const struct nodes *n, const struct outages *o)
{
	for (uint32_t i = 0; i < o->count; i++) {
		json_t *note = json_note(o->list[i].noticed_ns, "outage");

		outage_members(note, n, &o->list[i]);
		write_json_note(w, note);
	}
}

/* Comparing tests: a suite's final table, the spread of a repeated test, the text distribution, and
 * redis-benchmark's CSV. */

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

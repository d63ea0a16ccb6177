/* SPDX-License-Identifier: MIT */
/* A test's figures as JSON, for programs: latencies in ns as counted, and how exact percentiles are.
 * docs/reference/load.md lists the members. */
#include "loadgen/output.h"
#include "recording/json_block.h"

static void put_latency(json_t *j, const struct wanted_figures *w, const struct operation_figures *o)
{
	json_put_count(j, "count", o->requests);
	json_put_number(j, "mean", o->mean_ns);
	json_put_count(j, "min", o->min_ns);
	for (uint32_t i = 0; i < w->percentile_count; i++)
		json_put_count(j, w->names[i], o->percentile_ns[i]);
	json_put_count(j, "max", o->max_ns);
	json_put_number(j, "stddev", o->stddev_ns);
}

/* Over all operations, and always from a histogram. */
static void put_arrivals(json_t *j, const struct result_figures *f)
{
	json_t *latency = json_put_object(j, "latency_ns");

	json_put_count(latency, "count", f->arrivals.count);
	json_put_number(latency, "mean", f->arrivals.mean_ns);
	json_put_count(latency, "min", f->arrivals.min_ns);
	for (uint32_t i = 0; i < f->wanted->percentile_count; i++)
		json_put_count(latency, f->wanted->names[i], f->arrivals.percentile_ns[i]);
	json_put_count(latency, "max", f->arrivals.max_ns);
	json_put_number(latency, "stddev", f->arrivals.stddev_ns);
	json_put_number(j, "percentile_error", 0.001);
	j = json_put_object(j, "unread_ns");
	json_put_number(j, "mean", f->arrivals.unread_mean_ns);
	json_put_count(j, "max", f->arrivals.unread_max_ns);
}

static void put_buckets(json_t *j, const struct wanted_figures *w, const struct operation_figures *o)
{
	for (uint32_t i = 0; i <= w->bucket_count; i++) {
		json_t *bucket = json_put_object(j, NULL);

		if (i < w->bucket_count)
			json_put_count(bucket, "up_to_ns", w->bucket_ns[i]);
		else
			json_put_count(bucket, "over_ns", w->bucket_ns[i - 1]);
		json_put_count(bucket, "requests", o->buckets[i]);
	}
}

static void put_operation(json_t *j, const struct result_figures *f, const struct operation_figures *o)
{
	json_t *kinds;

	json_put_count(j, "requests", o->requests);
	json_put_count(j, "misses", o->status[FT_STATUS_MISS]);
	json_put_count(j, "errors", o->errors);
	kinds = json_put_object(j, "errors_by_kind");
	for (int k = 0; k < STATUSES; k++)
		if (status_is_error((unsigned)k) && o->status[k])
			json_put_count(kinds, status_names[k], o->status[k]);
	json_put_number(j, "requests_per_s", figures_per_second(f, (double)figures_answers(o)));
	json_put_count(j, "bytes", o->bytes);
	json_put_number(j, "mb_per_s", figures_per_second(f, (double)o->bytes * 1e-6));
	put_latency(json_put_object(j, "latency_ns"), f->wanted, o);
	if (f->wanted->bucket_count)
		put_buckets(json_put_array(j, "buckets"), f->wanted, o);
}

/* Each kind of error with its first and last time, CLOCK_MONOTONIC. */
static void put_times(json_t *j, const char *name, const struct error_times *t)
{
	json_t *times = json_put_object(j, name);

	json_put_count(times, "count", t->count);
	json_put_count(times, "first_ns", t->first_ns);
	json_put_count(times, "last_ns", t->last_ns);
}

static void put_errors(json_t *j, const struct result_figures *f)
{
	json_t *replies = json_put_object(j, "error_replies"), *times = json_put_object(j, "error_times"),
	       *texts = json_put_object(j, "error_texts");

	for (int i = 0; i < ERROR_WORDS && f->errors[i].times.count; i++) {
		json_put_count(replies, f->errors[i].word, f->errors[i].times.count);
		put_times(times, f->errors[i].word, &f->errors[i].times);
		if (*f->errors[i].text)
			json_put_text(texts, f->errors[i].word, f->errors[i].text);
	}
	for (int i = 0; i < STATUSES; i++)
		if (f->statuses[i].count)
			put_times(times, status_names[i], &f->statuses[i]);
}

void report_json(json_t *j, const struct result_figures *f, const struct workload *w)
{
	json_t *operations, *part;

	json_put_number(j, "seconds", f->seconds);
	json_put_truth(j, "exact", f->exact);
	json_put_number(j, "percentile_error", f->exact ? 0 : 0.001);
	operations = json_put_object(j, "operations");
	for (int i = 0; i < OPERATIONS_MAX; i++)
		if (f->operations[i].used)
			put_operation(json_put_object(operations, w->operations[i].name), f,
				      &f->operations[i]);
	put_operation(json_put_object(j, "total"), f, &f->operations[TOTAL]);
	if (f->arrivals.count)
		put_arrivals(json_put_object(j, "by_arrival"), f);
	put_errors(j, f);
	json_put_count(j, "connections_broken", f->broken);
	json_put_count(j, "connects_failed", f->connects_failed);
	json_put_count(j, "pushes", f->pushes);
	part = json_put_object(j, "by_second");
	json_put_count(part, "seconds", f->by_second.count);
	json_put_number(part, "reached_by_50_percent", f->by_second.half);
	json_put_number(part, "reached_by_99_percent", f->by_second.most);
	json_put_number(part, "reached_by_all", f->by_second.all);
	part = json_put_object(j, "sent_late_ns");
	json_put_number(part, "mean", f->late_mean_ns);
	json_put_count(part, "max", f->late_max_ns);
	json_put_count(j, "log_drops", f->log_drops);
	part = json_put_object(j, "client");
	json_put_number(part, "cpu_s", f->cpu_s);
	json_put_number(part, "busiest_thread", f->busiest);
}

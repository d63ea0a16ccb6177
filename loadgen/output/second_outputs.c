/* SPDX-License-Identifier: MIT */
/* A row per second and operation. Percentiles of a second come from its histogram (at most 0.1 % too high).
 */
#include "second_outputs.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "common/files/output.h"
#include "recording/recording.h"

int second_outputs_open(struct second_outputs *out, const struct options *o, char *error, size_t size)
{
	struct ft_clock clock;
	int rc = 0;

	memset(out, 0, sizeof(*out));
	out->statsd.fd = -1;
	if (o->statsd_port &&
	    statsd_open(&out->statsd, o->statsd_host, o->statsd_port, o->statsd_prefix, error, size))
		return -1;
	ft_clock_read(&clock);
	out->start_ns = clock.monotonic_ns;
	if (o->series_path) {
		out->series = output_fopen(o->series_path);
		if (!out->series) {
			snprintf(error, size, "cannot write %s: %s", o->series_path, output_why(errno));
			return -1;
		}
		fprintf(
		    out->series,
		    "time_s,seconds,test,operation,requests,errors,requests_per_s,mb_per_s,mean_ms,min_ms,"
		    "p50_ms,p90_ms,p99_ms,p99.9_ms,max_ms\n");
	}
	if (o->hlog_path)
		rc = hdr_log_open(&out->hlog, o->hlog_path, clock.realtime_ns, clock.monotonic_ns);
	if (rc)
		snprintf(error, size, "cannot write %s: %s", o->hlog_path, output_why(-rc));
	return rc ? -1 : 0;
}

static void series_row(struct second_outputs *out, const char *test, const char *operation,
		       const struct operation_stats *s, uint64_t from_ns, uint64_t to_ns)
{
	double seconds = (double)(to_ns - from_ns) * 1e-9;
	const struct ft_histogram *h = &s->latency;
	uint64_t requests = operation_requests(s), errors = operation_errors(s);

	fprintf(out->series,
		"%.3f,%.3f,%s,%s,%" PRIu64 ",%" PRIu64 ",%.1f,%.3f,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f\n",
		(double)(from_ns - out->start_ns) * 1e-9, seconds, test, operation, requests, errors,
		(double)requests / seconds, (double)s->bytes * 1e-6 / seconds, ft_histogram_mean(h) * 1e-6,
		(double)h->min_ns * 1e-6, (double)ft_histogram_percentile(h, 50) * 1e-6,
		(double)ft_histogram_percentile(h, 90) * 1e-6, (double)ft_histogram_percentile(h, 99) * 1e-6,
		(double)ft_histogram_percentile(h, 99.9) * 1e-6, (double)h->max_ns * 1e-6);
}

void second_outputs_write(struct second_outputs *out, const char *test, const struct workload *w,
			  const struct stats *second, uint64_t from_ns, uint64_t to_ns)
{
	if (to_ns <= from_ns)
		return;
	statsd_send(&out->statsd, w, second);
	for (uint32_t i = 0; i < w->operation_count; i++) {
		const struct operation_stats *s = second->operations[i];

		if (!s)
			continue;
		if (out->series)
			series_row(out, test, w->operations[i].name, s, from_ns, to_ns);
		if (out->hlog && s->latency.count)
			hdr_log_write(out->hlog, w->operations[i].name, from_ns, to_ns - from_ns,
				      &s->latency);
	}
	if (out->series)
		fflush(out->series);
}

int second_outputs_close(struct second_outputs *out, const struct options *o, char *error, size_t size)
{
	int rc = hdr_log_close(out->hlog);
	bool bad = out->series && ferror(out->series);

	if (out->series && fclose(out->series) != 0)
		bad = true;
	statsd_close(&out->statsd);
	memset(out, 0, sizeof(*out));
	out->statsd.fd = -1;
	if (rc)
		snprintf(error, size, "%s is incomplete: %s", o->hlog_path, output_why(-rc));
	else if (bad)
		snprintf(error, size, "%s is incomplete: the disk did not accept it", o->series_path);
	return rc || bad ? -1 : 0;
}

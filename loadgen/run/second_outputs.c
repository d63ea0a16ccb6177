/* SPDX-License-Identifier: MIT */
/* The figures of each second as CSV, HDR log and statsd.
 *
 * A row per second and operation. Percentiles of a second come from its histogram (at most 0.1 % too high).
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/text.h"
#include "loadgen/net.h"
#include "loadgen/output.h"
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

/* A datagram has the lines of one operation: they are shorter than the smallest maximum of an Ethernet. */

int statsd_open(struct statsd *s, const char *host, uint32_t port, const char *prefix, char *error,
		size_t size)
{
	struct server_socket to;
	char why[128];

	*s = (struct statsd){.fd = -1, .prefix = prefix};
	if (socket_resolve(host, port, NULL, &to, 1, why, sizeof(why)) < 1) {
		snprintf(error, size, "--statsd: cannot find the host %s: %s", host, why);
		return -1;
	}
	s->fd = socket(to.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd >= 0 && connect(s->fd, (const struct sockaddr *)&to.address, to.length) == 0)
		return 0;
	snprintf(error, size, "--statsd: cannot send to %s: %s", host, strerror(errno));
	statsd_close(s);
	return -1;
}

void statsd_close(struct statsd *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

/* An operation's name in a metric's: letters, digits, - and _ remain. */
static void plain_name(const char *name, char *out, size_t size)
{
	size_t n = 0;

	for (; *name && n + 1 < size; name++)
		out[n++] = isalnum((unsigned char)*name) || *name == '-' ? *name : '_';
	out[n] = 0;
}

static void send_figures(const struct statsd *s, const char *name, const struct operation_stats *o)
{
	const struct ft_histogram *h = &o->latency;
	char text[1400];
	int n = snprintf(text, sizeof(text), "%s%s.requests:%" PRIu64 "|c\n%s%s.errors:%" PRIu64 "|c\n",
			 s->prefix, name, operation_requests(o), s->prefix, name, operation_errors(o));

	if (h->count)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			      "%s%s.p50:%.6f|g\n%s%s.p99:%.6f|g\n%s%s.p99_9:%.6f|g\n%s%s.max:%.6f|g\n",
			      s->prefix, name, (double)ft_histogram_percentile(h, 50) * 1e-6, s->prefix, name,
			      (double)ft_histogram_percentile(h, 99) * 1e-6, s->prefix, name,
			      (double)ft_histogram_percentile(h, 99.9) * 1e-6, s->prefix, name,
			      (double)h->max_ns * 1e-6);
	(void)!send(s->fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void statsd_send(const struct statsd *s, const struct workload *w, const struct stats *second)
{
	static struct operation_stats total; /* too large for the stack; only the main thread sends */
	char name[OPERATION_NAME + 2] = ".";
	uint32_t used = 0;

	if (s->fd < 0)
		return;
	for (uint32_t i = 0; i < w->operation_count; i++)
		used += second->operations[i] != NULL;
	for (uint32_t i = 0; i < w->operation_count && used > 1; i++) {
		if (!second->operations[i])
			continue;
		plain_name(w->operations[i].name, name + 1, sizeof(name) - 1);
		send_figures(s, name, second->operations[i]);
	}
	stats_total(second, &total);
	send_figures(s, "", &total);
}

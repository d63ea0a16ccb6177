/* SPDX-License-Identifier: MIT */
/* A datagram has the lines of one operation: they are shorter than the smallest maximum of an Ethernet. */
#include "statsd.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loadgen/net/socket.h"

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

/* SPDX-License-Identifier: MIT */
/* A datagram has the lines of one operation: they are shorter than the smallest maximum of an Ethernet. */
#include "statsd.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int statsd_open(struct statsd *s, const char *host, uint32_t port, const char *prefix, char *error,
		size_t size)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
	struct addrinfo *found = NULL;
	char service[16];
	int rc;

	*s = (struct statsd){.fd = -1, .prefix = prefix};
	snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(host, service, &hints, &found);
	if (rc) {
		snprintf(error, size, "--statsd: cannot find the host %s: %s", host, gai_strerror(rc));
		return -1;
	}
	s->fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd >= 0 && connect(s->fd, found->ai_addr, found->ai_addrlen)) {
		close(s->fd);
		s->fd = -1;
	}
	freeaddrinfo(found);
	if (s->fd < 0)
		snprintf(error, size, "--statsd: cannot send to %s: %s", host, strerror(errno));
	return s->fd < 0 ? -1 : 0;
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

static void send_figures(const struct statsd *s, const char *name, uint64_t requests, uint64_t errors,
			 const struct ft_histogram *h)
{
	char text[1400];
	int n = snprintf(text, sizeof(text), "%s%s.requests:%" PRIu64 "|c\n%s%s.errors:%" PRIu64 "|c\n",
			 s->prefix, name, requests, s->prefix, name, errors);

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
	static struct ft_histogram all; /* too large for the stack; only the main thread sends */
	uint64_t all_requests = 0, all_errors = 0;
	char name[OPERATION_NAME + 2] = ".";
	uint32_t used = 0;

	if (s->fd < 0)
		return;
	for (uint32_t i = 0; i < w->operation_count; i++)
		used += second->operations[i] != NULL;
	ft_histogram_reset(&all);
	for (uint32_t i = 0; i < w->operation_count; i++) {
		const struct operation_stats *o = second->operations[i];
		uint64_t requests = 0, errors = 0;

		if (!o)
			continue;
		for (unsigned k = 0; k < STATUSES; k++) {
			requests += o->status[k];
			errors += status_is_error(k) ? o->status[k] : 0;
		}
		plain_name(w->operations[i].name, name + 1, sizeof(name) - 1);
		if (used > 1)
			send_figures(s, name, requests, errors, &o->latency);
		ft_histogram_merge(&all, &o->latency);
		all_requests += requests;
		all_errors += errors;
	}
	send_figures(s, "", all_requests, all_errors, &all);
}

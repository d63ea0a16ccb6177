/* SPDX-License-Identifier: MIT */
/* A test's consumers: their connections, their figures, and their messages at the end. */
#include "phase_deliveries.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/text/visible.h"
#include "complain.h"
#include "loadgen/server/connect.h"

int phase_deliveries_start(struct run *r, struct phase *p)
{
	const struct options *o = r->o;
	struct deliveries_plan plan = {
	    .kind = o->delivery,
	    .consumers = o->consumers,
	    .channels = o->channels,
	    .operation = r->workload->delivery,
	    .thread = o->threads,
	    .backoff_ms = o->backoff_ms,
	    .on_error = o->on_error,
	    .workload = r->workload,
	    .endpoint = p->plan.endpoint,
	    .stamps = r->workload->stamps,
	    .log = r->log,
	    .log_over_ns = p->plan.log_over_ns,
	    .stop = &p->plan.ending.stop,
	    .gave_up = &p->plan.ending.gave_up,
	    .done_fd = p->plan.ending.done_fd,
	};
	char error[512];
	int *fds, rc;

	mix_add(&plan.mix, plan.operation, 1);
	plan.first_id = atomic_fetch_add(&p->plan.next_connection, o->consumers);
	fds = server_connect_all(&r->server, plan.first_id, o->consumers, error, sizeof(error));
	if (!fds) {
		complain(r, error);
		return -ECONNREFUSED;
	}
	/* Data left by another repeat does not count. */
	r->workload->stamps->run++;
	rc = deliveries_start(&p->deliveries, &plan, fds, error, sizeof(error));
	free(fds);
	if (rc)
		complain(r, error);
	return rc;
}

void phase_deliveries_end(struct run *r, struct phase *p)
{
	const struct operation_stats *sent = p->totals->operations[0];

	deliveries_end(p->deliveries, sent ? sent->status[FT_STATUS_OK] : 0, r->o->drain_ns,
		       &p->plan.ending.abandon, &p->delivery_counts);
	deliveries_take(p->deliveries, p->second);
}

void phase_deliveries_report(struct run *r, const struct phase *p, FILE *to)
{
	const struct delivery_counts *d = &p->delivery_counts;
	uint64_t lost = d->expected > d->received ? d->expected - d->received : 0;
	char text[300];

	if (to) {
		fprintf(to,
			"deliveries: %" PRIu64 " of %" PRIu64 " expected by %u consumer%s, lost %" PRIu64
			", duplicates %" PRIu64,
			d->received, d->expected, r->o->consumers, r->o->consumers == 1 ? "" : "s", lost,
			d->duplicates);
		if (d->foreign)
			fprintf(to, ", unrelated messages %" PRIu64, d->foreign);
		if (d->broken)
			fprintf(to, ", consumer connections lost or refused %" PRIu64, d->broken);
		fputc('\n', to);
	}
	if (d->broken) {
		fprintf(stderr,
			"forktail-load: consumer connections were lost %" PRIu64 " times: ", d->broken);
		put_visible(stderr, d->why ? d->why : "the reason is not known");
		fputc('\n', stderr);
	} else if (lost) {
		snprintf(text, sizeof(text), "%" PRIu64 " acknowledged messages were not delivered", lost);
		complain(r, text);
	}
}

void phase_deliveries_json(const struct phase *p, const struct options *o, json_t *j)
{
	const struct delivery_counts *d = &p->delivery_counts;
	json_t *deliveries = json_put_object(j, "deliveries");

	json_put_count(deliveries, "consumers", o->consumers);
	json_put_count(deliveries, "expected", d->expected);
	json_put_count(deliveries, "received", d->received);
	json_put_count(deliveries, "lost", d->expected > d->received ? d->expected - d->received : 0);
	json_put_count(deliveries, "duplicates", d->duplicates);
	json_put_count(deliveries, "foreign", d->foreign);
	json_put_count(deliveries, "broken", d->broken);
}

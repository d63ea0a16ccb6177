/* SPDX-License-Identifier: MIT */
/* A day has 86,400 seconds, so all are kept. */
#include "second_rates.h"

#include <math.h>
#include <stdlib.h>

/* Of a second, threads count a little less before their tick. */
#define WHOLE_NS 900000000u

static uint64_t answers(const struct stats *s)
{
	uint64_t count = 0;

	for (int i = 0; i < OPERATIONS_MAX; i++)
		if (s->operations[i])
			count += status_answers(s->operations[i]->status);
	return count;
}

void second_rates_add(struct second_rates *r, const struct stats *second)
{
	double *grown;

	if (second->span_ns < WHOLE_NS)
		return;
	if (r->count == r->room) {
		grown = realloc(r->rates, sizeof(*grown) * (r->room ? 2 * r->room : 64));
		if (!grown)
			return;
		r->rates = grown;
		r->room = r->room ? 2 * r->room : 64;
	}
	r->rates[r->count++] = (double)answers(second) * 1e9 / (double)second->span_ns;
}

void second_rates_free(struct second_rates *r)
{
	free(r->rates);
	*r = (struct second_rates){0};
}

static int descending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x < y) - (x > y);
}

double second_rates_reached(struct second_rates *r, double percent)
{
	uint32_t rank = (uint32_t)ceil(percent / 100 * r->count);

	if (r->count == 0)
		return 0;
	qsort(r->rates, r->count, sizeof(*r->rates), descending);
	return r->rates[rank == 0 ? 0 : rank - 1];
}

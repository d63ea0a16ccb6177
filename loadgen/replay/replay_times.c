/* SPDX-License-Identifier: MIT */
/* Times are changed in the records themselves, once before the load, so that sending handles only one kind of
 * time, plus the speed as a factor. */
#include "replay_times.h"

#include "loadgen/command/random.h"

#define SECOND_NS 1000000000ull

void replay_spread_seconds(struct replay *r)
{
	uint32_t first = 0;

	for (uint32_t i = 1; i <= r->count; i++) {
		uint32_t n = i - first;

		if (i < r->count && r->records[i].due_ns == r->records[first].due_ns)
			continue;
		for (uint32_t k = 1; k < n; k++)
			r->records[first + k].due_ns += (uint64_t)((unsigned __int128)SECOND_NS * k / n);
		first = i;
	}
}

void replay_set_span(struct replay *r)
{
	uint64_t last = r->count ? r->records[r->count - 1].due_ns : 0;

	r->span_ns = last + (r->count > 1 && last > 0 ? last / (r->count - 1) : SECOND_NS);
}

void replay_limit(struct replay *r, uint64_t count)
{
	if (count < r->count)
		r->count = (uint32_t)count;
	replay_set_span(r);
}

void replay_pace(struct replay *r, enum arrival arrival, double rate, uint64_t seed)
{
	struct pacing pacing;

	pacing_start(&pacing, arrival, rate, 0, 0, PACING_NEVER, UINT64_MAX, random_begin(seed, 0, 3));
	for (uint32_t i = 0; i < r->count; i++) {
		r->records[i].due_ns = pacing.due_ns;
		pacing_take(&pacing);
	}
	r->timed = r->paced = true;
	r->speed = 1;
	replay_set_span(r);
}

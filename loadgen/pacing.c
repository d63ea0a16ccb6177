/* SPDX-License-Identifier: MIT */
/* Arrival instants: constant spacing, or a Poisson process (exponential gaps by inversion). */
#include "pacing.h"

#include <math.h>

static void settle(struct pacing *p)
{
	uint64_t due = p->start_ns + (uint64_t)p->offset_ns;

	p->due_ns = due < p->end_ns ? due : PACING_NEVER;
}

static double gap_ns(struct pacing *p)
{
	return -log(random_unit(&p->random)) * p->interval_ns;
}

void pacing_start(struct pacing *p, enum arrival arrival, double rate, double phase, uint64_t start_ns,
		  uint64_t end_ns, uint64_t count, struct random_stream random)
{
	*p = (struct pacing){
	    .arrival = arrival,
	    .interval_ns = 1e9 / rate,
	    .phase_ns = phase * 1e9 / rate,
	    .start_ns = start_ns,
	    .end_ns = end_ns,
	    .random = random,
	    .due_ns = PACING_NEVER,
	};
	if (count == 0)
		return;
	p->left = count - 1;
	p->offset_ns = arrival == ARRIVAL_POISSON ? gap_ns(p) : p->phase_ns;
	settle(p);
}

void pacing_take(struct pacing *p)
{
	if (p->left == 0) {
		p->due_ns = PACING_NEVER;
		return;
	}
	p->left--;
	p->index++;
	if (p->arrival == ARRIVAL_POISSON)
		p->offset_ns += gap_ns(p);
	else
		p->offset_ns = p->phase_ns + (double)p->index * p->interval_ns;
	settle(p);
}

void pacing_stop(struct pacing *p, uint64_t at_ns)
{
	if (p->end_ns > at_ns + 1)
		p->end_ns = at_ns + 1;
	if (p->due_ns >= p->end_ns)
		p->due_ns = PACING_NEVER;
}

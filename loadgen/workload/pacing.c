/* SPDX-License-Identifier: MIT */
/* Arrival instants: constant spacing, or a Poisson process (exponential gaps by inversion); with a profile,
 * the same spacing in its integral. */
#include "pacing.h"

#include <math.h>

static void settle(struct pacing *p)
{
	uint64_t due = p->start_ns + (uint64_t)p->offset_ns;

	p->due_ns = due < p->end_ns ? due : PACING_NEVER;
}

/* Mean 1. */
static double exponential(struct pacing *p)
{
	return -log(random_unit(&p->random));
}

static double gap_ns(struct pacing *p)
{
	return exponential(p) * p->interval_ns;
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

/* The instant that belongs to p->reached. */
static void settle_profile(struct pacing *p)
{
	uint64_t offset_ns;

	p->due_ns = PACING_NEVER;
	p->at_s = profile_when(p->profile, p->reached, p->at_s);
	if (!(p->at_s < 1e10))
		return;
	/* Rounded, so that an instant at a border of the profile is on it, and not in a stretch without load:
	 * the first request after such a stretch is due at its end, not at its beginning. */
	offset_ns = profile_resume_ns(p->profile, (uint64_t)(p->at_s * 1e9 + 0.5));
	if (offset_ns < UINT64_MAX - p->start_ns && p->start_ns + offset_ns < p->end_ns)
		p->due_ns = p->start_ns + offset_ns;
}

void pacing_start_profile(struct pacing *p, enum arrival arrival, const struct profile *profile, double share,
			  double phase, uint64_t start_ns, uint64_t end_ns, uint64_t count,
			  struct random_stream random)
{
	*p = (struct pacing){
	    .arrival = arrival,
	    .start_ns = start_ns,
	    .end_ns = end_ns,
	    .random = random,
	    .due_ns = PACING_NEVER,
	    .profile = profile,
	    .share = share,
	};
	if (count == 0 || share <= 0)
		return;
	p->left = count - 1;
	p->phase = phase;
	p->reached = (arrival == ARRIVAL_POISSON ? exponential(p) : phase) / share;
	settle_profile(p);
}

static void take_profile(struct pacing *p)
{
	if (p->due_ns == PACING_NEVER)
		return;
	if (p->arrival == ARRIVAL_POISSON)
		p->reached += exponential(p) / p->share;
	else
		p->reached = (p->phase + (double)p->index) / p->share;
	settle_profile(p);
}

void pacing_take(struct pacing *p)
{
	if (p->left == 0) {
		p->due_ns = PACING_NEVER;
		return;
	}
	p->left--;
	p->index++;
	if (p->profile) {
		take_profile(p);
		return;
	}
	if (p->arrival == ARRIVAL_POISSON)
		p->offset_ns += gap_ns(p);
	else
		p->offset_ns = p->phase_ns + (double)p->index * p->interval_ns;
	settle(p);
}

uint64_t pacing_end_ns(const struct pacing *p)
{
	struct pacing rest = *p;
	uint64_t last_ns = PACING_NEVER;

	if (p->end_ns != PACING_NEVER)
		return p->end_ns;
	if (p->left > UINT64_MAX / 2)
		return PACING_NEVER;
	for (; rest.due_ns != PACING_NEVER; pacing_take(&rest))
		last_ns = rest.due_ns;
	return last_ns;
}

void pacing_stop(struct pacing *p, uint64_t at_ns)
{
	if (p->end_ns > at_ns + 1)
		p->end_ns = at_ns + 1;
	if (p->due_ns >= p->end_ns)
		p->due_ns = PACING_NEVER;
}

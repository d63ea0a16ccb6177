/* SPDX-License-Identifier: MIT */
/* When requests are due in an open loop: a sequence of instants that doesn't depend on how the server
 * fares. Latency counts from these instants, so a server that stalls makes every request due meanwhile
 * late by what it really was late (no coordinated omission).
 *
 * The sequence is generated one instant ahead: a backlog needs no memory, it's just instants not yet taken.
 *
 * The rate is fixed, or follows a profile: then instants are where the profile's integral reaches the numbers
 * that at a fixed rate would be evenly or exponentially spaced (time rescaling), which is exact for both.
 */
#ifndef FORKTAIL_LOADGEN_PACING_H
#define FORKTAIL_LOADGEN_PACING_H

#include <stdint.h>

#include "loadgen/command/random.h"
#include "profile.h"

#ifdef __cplusplus
extern "C" {
#endif

enum arrival { ARRIVAL_CONSTANT, ARRIVAL_POISSON };

#define PACING_NEVER UINT64_MAX

struct pacing {
	uint64_t due_ns; /* the next instant, or PACING_NEVER when the sequence has ended */
	uint64_t left;	 /* instants after that one at most */
	uint64_t start_ns, end_ns;
	double offset_ns;   /* of due_ns from start_ns; kept in full precision so that errors don't add up */
	double interval_ns; /* mean */
	uint64_t index;	    /* of due_ns in the sequence */
	double phase_ns;
	enum arrival arrival;
	struct random_stream random;
	const struct profile *profile; /* NULL: a fixed rate */
	double reached, at_s;	       /* profile: the integral at due_ns, and its seconds from start_ns */
	double share, phase;
};

/* `rate` per second (> 0); instants lie in start_ns .. end_ns-1 and are at most `count`. The first instant of
 * a constant sequence is start + phase (0..1) of an interval: threads that share a rate interleave. */
void pacing_start(struct pacing *p, enum arrival arrival, double rate, double phase, uint64_t start_ns,
		  uint64_t end_ns, uint64_t count, struct random_stream random);

/* The same for a rate that follows a profile, which must outlive `p`; its time 0 is start_ns. This thread
 * gets `share` (0..1) of the rate. Instants of a constant sequence are where share * integral passes phase,
 * phase + 1, and so on. The sequence ends where the rate is 0 for good. */
void pacing_start_profile(struct pacing *p, enum arrival arrival, const struct profile *profile, double share,
			  double phase, uint64_t start_ns, uint64_t end_ns, uint64_t count,
			  struct random_stream random);

/* Takes the instant at due_ns and moves on to the next. */
void pacing_take(struct pacing *p);

/* Ends the sequence before the first instant later than at_ns. */
void pacing_stop(struct pacing *p, uint64_t at_ns);

#ifdef __cplusplus
}
#endif
#endif

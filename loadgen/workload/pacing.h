/* SPDX-License-Identifier: MIT */
/* When requests are due in an open loop: a sequence of instants that doesn't depend on the server. Latency
 * counts from these instants, so every request that falls due during a stall is charged its full delay (no
 * coordinated omission). The sequence is generated one instant ahead: a backlog needs no memory, it is only
 * instants not taken yet. The rate is fixed, or follows a profile. With a profile, the instants are where its
 * integral reaches the numbers that would be evenly or exponentially spaced at a fixed rate (time rescaling),
 * which is exact for both. */
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
	uint64_t left;	 /* maximum number of instants after that one */
	uint64_t start_ns, end_ns;
	double offset_ns;   /* of due_ns from start_ns; in full precision so that errors don't add up */
	double interval_ns; /* mean */
	uint64_t index;	    /* index of due_ns in the sequence */
	double phase_ns;
	enum arrival arrival;
	struct random_stream random;
	const struct profile *profile; /* NULL: a fixed rate */
	double reached, at_s;	       /* profile: the integral at due_ns, and its seconds from start_ns */
	double share, phase;
};

/* `rate` per second (> 0); instants are in start_ns .. end_ns-1 and at most `count`. The first instant of a
 * constant sequence is start + phase (0..1) of an interval: threads that share a rate interleave. */
void pacing_start(struct pacing *p, enum arrival arrival, double rate, double phase, uint64_t start_ns,
		  uint64_t end_ns, uint64_t count, struct random_stream random);

/* The same for a rate that follows a profile, which must outlive `p`; its time 0 is start_ns. This thread
 * gets `share` (0..1) of the rate. Instants of a constant sequence are where share * integral passes phase,
 * phase + 1, and so on. The sequence ends when the rate stays 0. */
void pacing_start_profile(struct pacing *p, enum arrival arrival, const struct profile *profile, double share,
			  double phase, uint64_t start_ns, uint64_t end_ns, uint64_t count,
			  struct random_stream random);

/* Takes the instant at due_ns and advances to the next. */
void pacing_take(struct pacing *p);

/* When the sequence ends by itself: at end_ns, or at its last instant if only their number is limited.
 * PACING_NEVER: it continues. */
uint64_t pacing_end_ns(const struct pacing *p);

/* Ends the sequence before the first instant later than at_ns. */
void pacing_stop(struct pacing *p, uint64_t at_ns);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* The two sides of comparing clocks. Both end at SIGINT or SIGTERM and return the exit status; what is wrong
 * is said on stderr. */
#ifndef FORKTAIL_HOSTS_CLOCK_CLOCK_H
#define FORKTAIL_HOSTS_CLOCK_CLOCK_H

#include <stdint.h>

enum { CLOCK_DONE = 0, CLOCK_USAGE = 2, CLOCK_ENVIRONMENT = 3 };

/* Answers whoever asks. */
int clock_serve(const char *listen);

struct probe_options {
	const char *peer;   /* who is asked */
	const char *output; /* the recording */
	uint64_t interval_ns;
	uint64_t duration_ns; /* 0: until a signal */
	uint64_t wait_ns;     /* how long to wait for the first answer */
	int argc;
	char **argv;
};
/* Asks again and again, and writes a recording of it. */
int clock_probe(const struct probe_options *o);

#endif

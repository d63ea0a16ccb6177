/* SPDX-License-Identifier: MIT */
/* The two sides of a clock comparison. Both run until SIGINT or SIGTERM, print errors on stderr and return
 * the exit status. */
#ifndef FORKTAIL_HOSTS_CLOCK_CLOCK_H
#define FORKTAIL_HOSTS_CLOCK_CLOCK_H

#include <stdint.h>

enum { CLOCK_DONE = 0, CLOCK_USAGE = 2, CLOCK_ENVIRONMENT = 3 };

/* Answers requests of all hosts. */
int clock_serve(const char *listen);

struct probe_options {
	const char *peer;   /* address of the server */
	const char *output; /* the recording */
	uint64_t interval_ns;
	uint64_t duration_ns; /* 0: until a signal */
	uint64_t wait_ns;     /* time limit for the first answer */
	int argc;
	char **argv;
};
/* Sends requests periodically and records the answers. */
int clock_probe(const struct probe_options *o);

#endif

/* SPDX-License-Identifier: MIT */
/* What the user asked for: every setting of forktail-load after its command line and environment were
 * read and checked. docs/forktail-load.md describes each option. */
#ifndef FORKTAIL_LOADGEN_OPTIONS_H
#define FORKTAIL_LOADGEN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pacing.h"
#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Exit statuses of forktail's programs. 1 is for gates: "the answer is no". */
enum { EXIT_DONE = 0, EXIT_USAGE = 2, EXIT_ENVIRONMENT = 3 };

struct options {
	const char *host, *socket; /* socket wins when set */
	const char *user, *password_file;
	char *password; /* from the environment or password_file; NULL: none */
	const char *log_path, *json_path;
	uint64_t requests;    /* 0: no limit */
	uint64_t duration_ns; /* 0: no limit */
	uint64_t keys;	      /* key space; 0: one fixed key */
	uint64_t fill;	      /* keys to fill; 0: run a workload */
	uint64_t seed;
	uint64_t drain_ns;   /* how long answers are awaited after the last request was due */
	uint64_t loading_ns; /* how long a server that loads its data set is waited for */
	double rate;	     /* requests per second over all threads; 0: closed loop */
	uint32_t port, database, connections, threads, pipeline;
	uint32_t value_bytes;
	uint32_t sets, gets;	/* --ratio */
	bool tests[OPERATIONS]; /* -t: one after the other */
	bool mixed;		/* by ratio; else by tests */
	bool quiet;
	enum arrival arrival;
};

/* Reads command line and environment into *o. Returns 0, or EXIT_USAGE or EXIT_ENVIRONMENT after one
 * sentence on stderr. --help and --version print and exit. */
int options_read(struct options *o, int argc, char **argv);
void options_free(struct options *o);

#ifdef __cplusplus
}
#endif
#endif

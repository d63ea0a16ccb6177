/* SPDX-License-Identifier: MIT */
/* Processes that are forked from the recorder to do one thing with other privileges. */
#ifndef FORKTAIL_LOADER_HELPER_PROCESS_H
#define FORKTAIL_LOADER_HELPER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
	/* Its descriptors: 0 to 2 are /dev/null. */
	HELPER_SOCKET = 3, /* the other end of `socket` */
	HELPER_KEPT = 4,   /* the first of those that were passed to it */
	HELPER_KEPT_MAX = 8,
};

struct helper_process {
	pid_t pid;  /* 0: none */
	int socket; /* packets; -1: none */
};

struct helper_setup {
	const char *name; /* as ps shows it */
	/* What the process does. `recorder` is for the functions of privileges.h. The process ends with it.
	 */
	void (*live)(pid_t recorder, const void *context);
	const void *context;
	const int *kept; /* descriptors that it keeps; a negative one is /dev/null there */
	size_t kept_count;
	int socket_bytes;  /* of both ends; 0: the system's default */
	bool low_priority; /* not for one that the recorder waits for */
};

/* Forks the process. All other descriptors are closed there. Returns 0 or a
 * negative errno. */
int helper_process_start(struct helper_process *h, const struct helper_setup *setup);
/* Closes the socket and ends the process, whatever it is doing. `wait`: until it has ended by itself. */
void helper_process_end(struct helper_process *h, bool wait);

#endif

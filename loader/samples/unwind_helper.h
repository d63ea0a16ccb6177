/* SPDX-License-Identifier: MIT */
/* The helper process that reads untrusted data of targets: ELF files, unwind tables, stacks. */
#ifndef FORKTAIL_LOADER_UNWIND_HELPER_H
#define FORKTAIL_LOADER_UNWIND_HELPER_H

#include <sys/types.h>

struct unwind_helper {
	pid_t pid;     /* 0: none, or it has exited */
	int requests;  /* our end of the socket: requests out, answers in; does not block */
	int questions; /* debug files: questions in, answers out */
};

/* Forks a helper. It cannot look for anything on the host: it has no capabilities, no files except those it
 * is given, and few system calls. Returns 0 or a negative errno. */
int unwind_helper_start(struct unwind_helper *h);
/* Ends it, whatever it is doing. */
void unwind_helper_end(struct unwind_helper *h);

#endif

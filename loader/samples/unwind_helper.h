/* SPDX-License-Identifier: MIT */
/* The process that reads what targets bring: their ELF files, their unwind tables, their stacks. */
#ifndef FORKTAIL_LOADER_UNWIND_HELPER_H
#define FORKTAIL_LOADER_UNWIND_HELPER_H

#include <sys/types.h>

struct unwind_helper {
	pid_t pid;     /* 0: none, or it has gone */
	int requests;  /* our end of it: requests out, answers in; doesn't block */
	int questions; /* debug files: questions in, answers out */
};

/* Forks one. It may look for nothing on the host by itself: it has no capabilities, no files but those it is
 * given, and few system calls. 0 or a negative errno. */
int unwind_helper_start(struct unwind_helper *h);
/* Ends it, whatever it is at. */
void unwind_helper_end(struct unwind_helper *h);

#endif

/* SPDX-License-Identifier: MIT */
/* From a sampled thread's registers and stack to its functions by name, with libdw. */
#ifndef FORKTAIL_LOADER_UNWIND_H
#define FORKTAIL_LOADER_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/events.h"

enum { UNWIND_FRAMES = 64 }; /* the innermost; the rest is cut off */

/* Names are valid until the next call. */
struct unwound_frame {
	const char *function; /* "" if the file has no name for the address */
	const char *module;   /* file name of the program or library; "" if it is in none */
};

struct unwound {
	const char *program; /* the module that is the process' own program */
	size_t count;
	struct unwound_frame frames[UNWIND_FRAMES]; /* innermost first */
	bool cut;				    /* there are more callers than could be found */
};

struct unwinder;

struct unwinder *unwinder_open(void);
void unwinder_close(struct unwinder *u);

/* Reads a process' mappings, symbols and unwind tables now, so that its first samples needn't wait. */
void unwinder_prepare(struct unwinder *u, pid_t pid);
/* The process has ended. */
void unwinder_forget(struct unwinder *u, pid_t pid);

/* The function at e->ip of process e->tgid. `parent` (0: none) is asked where the process is gone already: a
 * child has its parent's mappings. */
void unwinder_locate(struct unwinder *u, const struct ft_event_sample *e, pid_t parent, struct unwound *out);
/* The same with all callers that the copied stack has. */
void unwinder_unwind(struct unwinder *u, const struct ft_event_sample_stack *e, pid_t parent,
		     struct unwound *out);

#endif

/* SPDX-License-Identifier: MIT */
/* The recorder's side of unwinding: which processes there are, what their samples wait for, and what becomes
 * of them when the helper doesn't answer.
 *
 * Nothing here waits, but for the end. Samples go out as they come, answers are taken in turns of the
 * recorder's loop, in the order of the samples. A sample that isn't answered within a second is answered with
 * nothing; a helper that has said nothing for longer is ended, and the next one takes its place. There are
 * three from the beginning, so that a recorder that records needn't be able to start processes. */
#ifndef FORKTAIL_LOADER_UNWINDING_H
#define FORKTAIL_LOADER_UNWINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/events.h"
#include "recording/format.h"

#ifdef __cplusplus
extern "C" {
#endif

struct unwinding;

/* A sample and what was found of it. */
struct unwinding_result {
	struct ft_cpu_sample record; /* as it was given */
	const char *program;	     /* name of the process' program */
	const char *frames;	     /* lines of stack_text.h; NULL: not known */
	bool callers, cut;
	size_t kernel_count;
	const uint64_t *kernel; /* addresses, innermost first */
};
typedef void (*unwinding_handler)(void *context, const struct unwinding_result *result);

/* Starts the helpers: early, before anything is opened that they should not have. NULL when they can't be. */
struct unwinding *unwinding_open(void);
/* Who gets the results. */
void unwinding_handle(struct unwinding *u, unwinding_handler handler, void *context);
void unwinding_close(struct unwinding *u);

/* Has a process' files read ahead. */
void unwinding_prepare(struct unwinding *u, pid_t pid);
void unwinding_forget(struct unwinding *u, pid_t pid);

/* Takes a sample: its result comes later, or at once when there is no time, room or helper for it. `parent`
 * (0: none) is asked where the process is gone already: a child has its parent's mappings. `whole` may be
 * NULL: then only the innermost function is wanted. */
void unwinding_add(struct unwinding *u, const struct ft_cpu_sample *record, const struct ft_event_sample *e,
		   const struct ft_event_sample_stack *whole, pid_t parent);

/* Readable when the helper asks for something. */
int unwinding_fd(const struct unwinding *u);
/* Answers its questions. */
void unwinding_questions(struct unwinding *u);
/* A turn of the recorder's loop: takes answers, sends what is queued, gives time for more. */
void unwinding_turn(struct unwinding *u);
/* Waits for the last answers, a second at most. */
void unwinding_settle(struct unwinding *u);

struct unwinding_figures {
	uint64_t unwound, unwind_ns; /* stacks, and the CPU time that samples took */
	uint64_t not_unwound; /* samples without their callers, or without any name, that should have them */
	uint64_t helper_cpu_ns; /* of all helpers, for everything */
	uint64_t helpers_ended; /* that died or hung */
	pid_t helper;		/* at work now; 0: none is left */
};
struct unwinding_figures unwinding_so_far(const struct unwinding *u);

#ifdef __cplusplus
}
#endif

#endif

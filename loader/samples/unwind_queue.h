/* SPDX-License-Identifier: MIT */
/* The recorder's side of unwinding: which processes there are, what their samples wait for, and what becomes
 * of them when the helper doesn't answer.
 *
 * Nothing here waits, but for the end. Samples go out as they come, answers are taken at ticks of the
 * recorder, in the order of the samples. A sample that isn't answered within a second is answered with
 * nothing; a helper that has said nothing for longer is ended, and the next one takes its place. There are
 * three from the beginning, so that a recorder that records needn't be able to start processes. */
#ifndef FORKTAIL_LOADER_UNWIND_QUEUE_H
#define FORKTAIL_LOADER_UNWIND_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/events.h"
#include "recording/format.h"

#ifdef __cplusplus
extern "C" {
#endif

struct unwind_queue;

/* A sample and what was found of it. */
struct unwind_queue_result {
	struct ft_cpu_sample record; /* as it was given */
	const char *program;	     /* name of the process' program */
	const char *frames;	     /* lines of stack_text.h; NULL: not known */
	bool callers, cut;
	size_t kernel_count;
	const uint64_t *kernel; /* addresses, innermost first */
};
typedef void (*unwind_queue_handler)(void *context, const struct unwind_queue_result *result);

/* Starts the helpers: early, before anything is opened that they should not have. NULL when they can't be. */
struct unwind_queue *unwind_queue_open(void);
/* Who gets the results. */
void unwind_queue_handle(struct unwind_queue *u, unwind_queue_handler handler, void *context);
void unwind_queue_close(struct unwind_queue *u);

/* Has a process' files read ahead. */
void unwind_queue_prepare(struct unwind_queue *u, pid_t pid);
void unwind_queue_forget(struct unwind_queue *u, pid_t pid);

/* Takes a sample: its result comes later, or at once when there is no time, room or helper for it. `parent`
 * (0: none) is asked where the process is gone already: a child has its parent's mappings. `whole` may be
 * NULL: then only the innermost function is wanted. */
void unwind_queue_add(struct unwind_queue *u, const struct ft_cpu_sample *record,
		      const struct ft_event_sample *e, const struct ft_event_sample_stack *whole,
		      pid_t parent);

/* Readable when the helper asks for something. */
int unwind_queue_fd(const struct unwind_queue *u);
/* Answers its questions. */
void unwind_queue_questions(struct unwind_queue *u);
/* At every tick of the recorder: takes answers, sends what is queued, gives time for more. */
void unwind_queue_tick(struct unwind_queue *u);
/* Waits for the last answers, a second at most. */
void unwind_queue_settle(struct unwind_queue *u);

struct unwind_queue_figures {
	uint64_t unwound, unwind_ns; /* stacks, and the CPU time that samples took */
	uint64_t not_unwound; /* samples without their callers, or without any name, that should have them */
	uint64_t helper_cpu_ns; /* of all helpers, for everything */
	uint64_t helpers_ended; /* that died or hung */
	pid_t helper;		/* at work now; 0: none is left */
};
struct unwind_queue_figures unwind_queue_so_far(const struct unwind_queue *u);

#ifdef __cplusplus
}
#endif

#endif

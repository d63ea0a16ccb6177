/* SPDX-License-Identifier: MIT */
/* The recorder's side of unwinding: processes, waiting samples, and recovery when the helper does not answer.
 * Nothing here blocks except at the end. Samples are sent as they arrive, those of a new process when its
 * files have been opened; answers are read at ticks of the recorder. A sample without an answer within a
 * second gets an empty result. A helper that is silent longer is ended and replaced, and the file that it
 * read is not read again. */
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
struct target_files;

/* A sample and its result. */
struct unwind_queue_result {
	struct ft_cpu_sample record; /* as it was submitted */
	const char *program;	     /* name of the process' program */
	const char *frames;	     /* lines of stack_text.h; NULL: unresolved */
	bool callers, cut;
	size_t kernel_count;
	const uint64_t *kernel; /* addresses, innermost first */
};
typedef void (*unwind_queue_handler)(void *context, const struct unwind_queue_result *result);

/* Starts the helper. `files` must stay open longer; its answers come here from now on. NULL: it cannot be
 * started. */
struct unwind_queue *unwind_queue_open(struct target_files *files);
/* Sets who receives the results. */
void unwind_queue_handle(struct unwind_queue *u, unwind_queue_handler handler, void *context);
void unwind_queue_close(struct unwind_queue *u);

/* Reads a process' files in advance. */
void unwind_queue_prepare(struct unwind_queue *u, pid_t pid);
void unwind_queue_forget(struct unwind_queue *u, pid_t pid);

/* Takes a sample. Its result arrives later, or at once if there is no time, space or helper for it. `parent`
 * (0: none) is used if the process has exited: a child has its parent's mappings. `whole` may be NULL, then
 * only the innermost function is resolved. */
void unwind_queue_add(struct unwind_queue *u, const struct ft_cpu_sample *record,
		      const struct ft_event_sample *e, const struct ft_event_sample_stack *whole,
		      pid_t parent);

/* Called at every tick of the recorder: reads answers, sends queued requests, renews the budget, replaces
 * helpers. */
void unwind_queue_tick(struct unwind_queue *u);
/* Waits for the last answers, at most one second. */
void unwind_queue_settle(struct unwind_queue *u);

struct unwind_queue_figures {
	uint64_t unwound, unwind_ns; /* stacks, and the CPU time that samples took */
	uint64_t not_unwound;	     /* samples that lack callers or names that they should have */
	uint64_t helper_cpu_ns;	     /* of all helpers in total */
	pid_t helper, files_helper;  /* running now; 0: none */
};
struct unwind_queue_figures unwind_queue_so_far(const struct unwind_queue *u);

#ifdef __cplusplus
}
#endif

#endif

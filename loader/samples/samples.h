/* SPDX-License-Identifier: MIT */
/* Turns CPU samples of the ring into records. Each distinct stack is written once, and samples refer to
 * it. */
#ifndef FORKTAIL_LOADER_SAMPLES_H
#define FORKTAIL_LOADER_SAMPLES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/events.h"
#include "loader/samples/unwind_queue.h"
#include "loader/targets/threads.h"
#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct samples;

/* `threads` and `unwinding` must outlive it. Returns NULL without memory. All other functions accept NULL,
 * which means that no samples are wanted. */
struct samples *samples_open(struct ft_writer *writer, const struct threads *threads,
			     struct unwind_queue *unwind_queue);
void samples_close(struct samples *s);

/* Reads the process' symbols in advance. */
void samples_prepare(struct samples *s, pid_t pid);

/* An event of type FT_EVENT_SAMPLE or FT_EVENT_SAMPLE_STACK. */
void samples_add(struct samples *s, const void *event, size_t bytes);
void samples_thread_ended(struct samples *s, const struct ft_event_thread *e);

/* Called at every tick of the recorder: writes samples whose stacks are resolved. */
void samples_tick(struct samples *s);
/* Waits for the last stacks, at most one second. */
void samples_settle(struct samples *s);

/* A new file begins: no stack has been written to it. */
void samples_begin_segment(struct samples *s);

struct samples_figures {
	uint64_t samples; /* number of stacks written to this file */
	struct unwind_queue_figures unwinding;
};
struct samples_figures samples_so_far(const struct samples *s);

#ifdef __cplusplus
}
#endif

#endif

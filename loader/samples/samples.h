/* SPDX-License-Identifier: MIT */
/* From CPU samples of the ring to records: each distinct stack is written once, samples refer to it. */
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

/* `threads` and `unwinding` must outlive it. NULL when memory is out. All of the others take NULL: no samples
 * are wanted. */
struct samples *samples_open(struct ft_writer *writer, const struct threads *threads,
			     struct unwind_queue *unwind_queue);
void samples_close(struct samples *s);

/* Reads the process' symbols ahead. */
void samples_prepare(struct samples *s, pid_t pid);

/* An event of type FT_EVENT_SAMPLE or FT_EVENT_SAMPLE_STACK. */
void samples_add(struct samples *s, const void *event, size_t bytes);
void samples_thread_ended(struct samples *s, const struct ft_event_thread *e);

/* At every tick of the recorder: writes samples whose stacks are known by now. */
void samples_tick(struct samples *s);
/* Waits for the last ones; a second at most. */
void samples_settle(struct samples *s);

/* A file begins in which no stack has been written. */
void samples_begin_segment(struct samples *s);

struct samples_figures {
	uint64_t samples; /* written, to this file */
	struct unwind_queue_figures unwinding;
};
struct samples_figures samples_so_far(const struct samples *s);

#ifdef __cplusplus
}
#endif

#endif

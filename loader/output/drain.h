/* SPDX-License-Identifier: MIT */
/* Turns ring buffer events into records: adds names for kernel numbers and writes shared details of spans
 * once. */
#ifndef FORKTAIL_LOADER_DRAIN_H
#define FORKTAIL_LOADER_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"
#include "loader/samples/samples.h"
#include "loader/sockets/sockets.h"
#include "loader/targets/suspensions.h"
#include "loader/targets/threads.h"
#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How far a CPU slice has been written. */
struct slice_extent {
	uint64_t start_ns, end_ns;
};

struct drain {
	struct ft_writer *writer;
	struct threads *threads;
	struct samples *samples; /* NULL: not wanted */
	struct sockets *sockets; /* NULL: not wanted */
	struct suspensions suspensions;
	void *details; /* tsearch tree of those written */
	uint32_t detail_count;
	bool details_full;
	struct slice_extent (*slices_written)[FT_CPU_SLICES]; /* by CPU and position in its ring */
	struct ft_span *open; /* when the threads' open states were last requested */
	size_t open_count, open_room;
	uint64_t spans, tallies, io;
};

/* An event_handler (programs.h). The context is a struct drain. */
void drain_event(void *context, const void *event, size_t bytes);
/* Ends threads whose exit event was lost (threads_sweep). */
void drain_sweep(struct drain *d);
/* Writes the state that each thread is currently in. */
void drain_write_open(struct drain *d);
/* A new file begins: nothing has been written or counted in it yet. */
void drain_begin_segment(struct drain *d);
void drain_free(struct drain *d);

#ifdef __cplusplus
}
#endif

#endif

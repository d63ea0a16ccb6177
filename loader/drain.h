/* SPDX-License-Identifier: MIT */
/* From ring buffer events to records: gives names to what the kernel only numbers. */
#ifndef FORKTAIL_LOADER_DRAIN_H
#define FORKTAIL_LOADER_DRAIN_H

#include <stddef.h>
#include <stdint.h>

#include "recording/recording.h"
#include "samples.h"
#include "threads.h"

struct drain {
	struct ft_writer *writer;
	struct threads *threads;
	struct samples *samples; /* NULL: none wanted */
	void *details;		 /* tsearch tree of those written */
	uint32_t detail_count;
	uint64_t spans, tallies, io;
};

/* An event_handler (programs.h); context is a struct drain. */
void drain_event(void *context, const void *event, size_t bytes);
void drain_free(struct drain *d);

#endif

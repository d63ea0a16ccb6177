/* SPDX-License-Identifier: MIT */
/* Who kept traced threads from running: the cgroup that was frozen, the process that traced them. Written
 * once each, as notes. */
#ifndef FORKTAIL_LOADER_HOLDS_H
#define FORKTAIL_LOADER_HOLDS_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"
#include "cgroups.h"
#include "recording/recording.h"
#include "threads.h"

#ifdef __cplusplus
extern "C" {
#endif

struct frozen_group {
	uint32_t tgid;
	char path[CGROUP_BYTES];
};

struct holds {
	const char *root;	     /* of the file system; "" but for tests */
	struct frozen_group *groups; /* noted so far */
	size_t count, room;
};

/* A thread has come back from being frozen. */
void holds_frozen(struct holds *h, struct ft_writer *w, const struct threads *threads,
		  const struct ft_event_span *e);
/* A thread has come back from being stopped by a tracer that nothing was written of yet. */
void holds_traced(struct ft_writer *w, const struct ft_event_span_detail *e);
void holds_free(struct holds *h);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
/* What suspended traced threads: the cgroup that was frozen, or the process that traced them. Each is written
 * once, as a note. */
#ifndef FORKTAIL_LOADER_SUSPENSIONS_H
#define FORKTAIL_LOADER_SUSPENSIONS_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"
#include "loader/targets/cgroups.h"
#include "loader/targets/threads.h"
#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct frozen_group {
	uint32_t tgid;
	char path[CGROUP_BYTES];
};

struct tracer {
	uint64_t t_ns, pid;
	char comm[FT_NAME_BYTES];
};
enum { TRACERS_MAX = 64 };

struct suspensions {
	const char *root;	     /* of the file system; "" except in tests */
	struct frozen_group *groups; /* number noted so far */
	size_t count, room;
	struct tracer tracers[TRACERS_MAX]; /* the last ones: the kernel programs report each once */
	size_t tracer_count;
};

/* A thread runs again after it was frozen. */
void suspensions_frozen(struct suspensions *h, struct ft_writer *w, const struct threads *threads,
			const struct ft_event_span *e);
/* A thread runs again after a tracer stopped it that has not been written yet. */
void suspensions_traced(struct suspensions *h, struct ft_writer *w, const struct ft_event_span_detail *e);
/* A new file begins without these notes: freezers are noted again when they freeze something, tracers at
 * once. */
void suspensions_begin_segment(struct suspensions *h, struct ft_writer *w);
void suspensions_free(struct suspensions *h);

#ifdef __cplusplus
}
#endif

#endif

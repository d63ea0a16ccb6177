/* SPDX-License-Identifier: MIT */
/* The traced threads as the recorder knows them: who they are, what part they play, when they ended. */
#ifndef FORKTAIL_LOADER_THREADS_H
#define FORKTAIL_LOADER_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "bpf/events.h"
#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct thread {
	struct ft_thread record; /* as last written */
	unsigned looks;		 /* how often its name was looked at since it began */
	struct ft_loop loop;	 /* t_ns 0: it was not seen to wait for an epoll instance */
	bool gone;		 /* it was when the table was last swept */
};

/* A target whose threads have ended. */
struct ended_target {
	pid_t pid;
	uint64_t t_ns; /* of the last; 0: there are others than its main thread yet */
	char comm[16];
};

struct threads {
	struct thread *all; /* ended ones are forgotten: their last record is on disk */
	size_t count, room;
	struct ended_target *ended; /* in their order */
	size_t ended_count;
	uint64_t begun; /* of targets and their children, so far */
	bool closing;	/* from now on accounts end because the recording does */
};

void threads_free(struct threads *t);

/* Writes the thread's record; a name that isn't settled yet is looked at again by threads_tick. */
void threads_begin(struct threads *t, const struct ft_event_thread *e, struct ft_writer *w);
void threads_end(struct threads *t, const struct ft_event_thread *e, struct ft_writer *w);
/* Writes which epoll instance a thread waits for from now on. */
void threads_loop(struct threads *t, const struct ft_loop *l, struct ft_writer *w);
/* A file begins that knows nothing of what was written: writes all that are alive, and what they wait for.
 * Targets that have ended are the files' before. */
void threads_begin_segment(struct threads *t, struct ft_writer *w);
/* Ten times a second: redis-server names its threads and its children a moment after they begin. */
void threads_tick(struct threads *t, struct ft_writer *w);
/* Whether a child has begun within the last 200 ms and not yet said what it is for. */
bool threads_unnamed(const struct threads *t);
/* Looks at those again. */
void threads_look(struct threads *t, struct ft_writer *w);
/* Now and then: forgets threads that are gone without their end having been seen (a full ring drops events),
 * which would be taken for alive, and of which there is no end in a long recording. */
void threads_sweep(struct threads *t);
/* The target that forked this process, or 0. */
pid_t threads_parent(const struct threads *t, pid_t tgid);
/* The process of a thread that is alive; of others the id itself. */
uint32_t threads_tgid(const struct threads *t, uint32_t tid);
/* Whether two threads are alive and of one process. */
bool threads_are_mates(const struct threads *t, uint32_t tid, uint32_t other);
/* Whether any thread of this process is alive. */
bool threads_alive(const struct threads *t, pid_t tgid);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
/* The traced threads known to the recorder: names, roles, and when they exited. */
#ifndef FORKTAIL_LOADER_THREADS_H
#define FORKTAIL_LOADER_THREADS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "bpf/events.h"
#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A process that has traced threads. */
struct process {
	uint32_t tgid, parent_tgid;
	uint32_t flags; /* of its threads: FT_THREAD_CHILD, FT_THREAD_CLIENT */
	size_t threads;
};

struct thread {
	struct ft_thread record; /* as last written */
	struct ft_loop loop;	 /* t_ns 0: it was not seen waiting for an epoll instance */
	struct process *process;
	size_t place;	     /* in `all` */
	unsigned looks;	     /* how often its name was read at ticks */
	uint64_t look_tick;  /* when it is read next */
	uint64_t missing_ns; /* the first sweep that did not find it; 0: it was found */
};

/* A target whose threads have exited. */
struct ended_target {
	pid_t pid;
	uint64_t t_ns; /* when the last one exited; 0: threads other than its main thread still run */
	char comm[16];
	uint32_t exit_code, exit_flags; /* of the last thread, as in struct ft_event_thread */
};

struct threads {
	struct thread **all; /* threads that exited are forgotten: their last record is on disk */
	size_t count, room;
	void *by_tid, *by_tgid; /* tsearch trees of struct thread and struct process */
	size_t young;		/* threads whose names are still read */
	size_t next_look;	/* index of the thread that is examined next */
	uint64_t ticks;
	uint64_t unnamed_until_ns;  /* until when a child may have no role */
	struct ended_target *ended; /* in order of their end */
	size_t ended_count;
	uint64_t begun; /* of targets and their children, so far */
	bool closing;	/* from now on accounts end because the recording ends */
	/* Asks for the command line of a process, for threads_title(). NULL: roles of children stay unknown.
	 */
	void (*ask_title)(void *context, pid_t pid);
	void *ask_context;
};

void threads_free(struct threads *t);

/* Writes the thread's record. threads_tick reads a name again that may still change. */
void threads_begin(struct threads *t, const struct ft_event_thread *e, struct ft_writer *w);
void threads_end(struct threads *t, const struct ft_event_thread *e, struct ft_writer *w);
/* How a process ended: "killed by SIGKILL (OOM killer)", "exit status 1"; "" if unknown. */
void exit_text(uint32_t exit_code, uint32_t exit_flags, char *text, size_t size);
/* The same as members of an object: status or signal, core_dumped, oom_killer. */
void json_put_exit(json_t *object, uint32_t exit_code, uint32_t exit_flags);
/* Writes which epoll instance a thread waits for from now on. */
void threads_loop(struct threads *t, const struct ft_loop *l, struct ft_writer *w);
/* A new file begins: writes all threads that are alive and what they wait for. Targets that have exited
 * belong to earlier files. */
void threads_begin_segment(struct threads *t, struct ft_writer *w);
/* At every tick: redis-server names its threads and children a moment after they start. Reads a limited
 * number of names, and a thread's name less and less often. */
void threads_tick(struct threads *t, struct ft_writer *w);
/* Whether a child started within the last 200 ms and its role is not known yet. */
bool threads_unnamed(const struct threads *t);
/* Reads the names of those children again. */
void threads_look(struct threads *t, struct ft_writer *w);
/* A child's command line: its role, if it is known by that. */
void threads_title(struct threads *t, pid_t pid, const char *title, struct ft_writer *w);
/* At intervals: calls `ended` with an exit event for each thread that exited without one, because a full ring
 * drops events. They would count as alive, and in a long recording their number would have no limit. The
 * event's time is when the thread was first not found. */
void threads_sweep(struct threads *t, void (*ended)(void *context, const struct ft_event_thread *e),
		   void *context);
/* The target that forked this process, or 0. */
pid_t threads_parent(const struct threads *t, pid_t tgid);
/* The process of a thread that is alive; for other threads the id itself. */
uint32_t threads_tgid(const struct threads *t, uint32_t tid);
/* Whether two threads are alive and belong to one process. */
bool threads_are_mates(const struct threads *t, uint32_t tid, uint32_t other);
/* Whether any thread of this process is alive. */
bool threads_alive(const struct threads *t, pid_t tgid);
/* Whether this process is alive and traced although it is no target: a target's child or a load generator. */
bool threads_of_other(const struct threads *t, pid_t tgid);

#ifdef __cplusplus
}
#endif

#endif

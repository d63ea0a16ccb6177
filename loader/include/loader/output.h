/* SPDX-License-Identifier: MIT */
/* What the recorder writes: events, losses, metrics of the host and of cgroups, and the segments of a
 * ring. */
#ifndef FORKTAIL_LOADER_OUTPUT_H
#define FORKTAIL_LOADER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/events.h"
#include "common/text.h"
#include "loader/attach.h"
#include "loader/samples.h"
#include "loader/targets.h"
#include "recording/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a recording lacks because events were lost. Each loss is recorded with the interval in which it
 * happened. Otherwise an explanation would be wrong without saying so. */

/* The counters as of the last read. */
struct losses {
	uint64_t drops[FT_DROP_SLOTS];
	uint64_t missed[PROGRAMS_MAX];
	uint64_t drops_ns, missed_ns; /* the time of that read */
};

void losses_begin(struct losses *l, uint64_t now_ns);

/* Writes the drops since the last read, indexed by enum ft_drop_slot. */
void losses_dropped(struct losses *l, struct ft_writer *w, const uint64_t drops[FT_DROP_SLOTS],
		    uint64_t now_ns);

/* Writes runs of programs that the kernel skipped: each is a system call, a switch or a fault that was not
 * seen. Pass the same programs in the same order each time, at most PROGRAMS_MAX. */
void losses_missed(struct losses *l, struct ft_writer *w, const struct program_cost *costs, size_t count,
		   uint64_t now_ns);

/* Total of drops and skipped runs so far. */
uint64_t losses_total(const struct losses *l);

/* The CPU time of the recorder's programs. */

struct program_account {
	double ns; /* of the runs that are accounted */
	uint64_t runs, sampled, sampled_ns;
};
struct cost_account {
	uint32_t windows;     /* in which the kernel's statistics were on */
	uint64_t measured_ns; /* their length */
	struct program_account programs[PROGRAMS_MAX];
};

/* When the next window begins, in ms since the recording began: often at first, so that a recording of 1.5 s
 * has enough of them, then every five seconds. */
uint64_t cost_next_window_ms(uint64_t now_ms);
/* A window of `on_ns` has ended. Pass the same programs in the same order each time, at most PROGRAMS_MAX. */
void cost_window(struct cost_account *a, const struct program_cost *costs, size_t count, uint64_t on_ns);
/* Whether there were enough windows to say how long a run takes. */
bool cost_known(const struct cost_account *a);
/* CPU time of all runs of the i-th program, which are now `c`. 0: none of them was in a window. */
double cost_ns(const struct cost_account *a, size_t i, const struct program_cost *c);

/* Host and target metrics from /proc: the state of the machine around a spike. */

struct proc_metrics;

/* Series are named on first use:
 *   host.cpu.{user,system,idle,iowait,irq,softirq,steal}   percent of all CPUs together
 *   host.memory.{available,free,cached,dirty,writeback,swap_free}   bytes
 *   host.{page_faults,major_faults,swap_in,swap_out}   per second (pages)
 *   host.disk.{read,write}   bytes per second, label device
 *   host.softirq   per second, labels cpu and vector
 *   host.network.{receive,transmit}   bytes per second, label interface
 *   host.{oom_kills,page_cache_drops,slab_drops}   as the kernel counts them
 *   target.{cpu,rss,minor_faults,major_faults}   percent of one CPU, bytes, per second; label pid
 *   cgroup.{throttles,throttled}   as the kernel counts them: times, ns; label cgroup
 *   cgroup.memory.{limit_hits,high_hits,oom_kills}   as the kernel counts them; label cgroup
 *
 * Of equal readings in a row only the first and the last are written. `proc` is where proc is mounted.
 * Returns NULL without memory. */
struct proc_metrics *proc_metrics_open(struct ft_writer *w, const char *proc);
/* Reads everything once, but targets of thousands of threads more rarely (struct look). Rates are over the
 * time since the last reading. */
void proc_metrics_sample(struct proc_metrics *m, const pid_t *pids, size_t count);
/* A new file begins: series are named and values written again, whether or not they changed. Series that the
 * previous file did not need are forgotten. */
void proc_metrics_begin_segment(struct proc_metrics *m);
void proc_metrics_close(struct proc_metrics *m);

/* What the kernel counts of the memory limits of targets' cgroups. */

struct cgroup_memory;

/* The smallest limit of this process' cgroups, in bytes; UINT64_MAX: none. */
uint64_t cgroup_memory_limit(const char *proc);

/* Returns NULL without a hierarchy with the memory controller, or without memory. `proc` is where proc is
 * mounted. */
struct cgroup_memory *cgroup_memory_open(struct proc_metrics *m, const char *proc);

/* Writes the counters of the cgroups of these processes, and of their ancestors, as series, with the time of
 * the last proc_metrics_sample. `c` may be NULL. Does nothing while the budget of looks does not allow it. */
void cgroup_memory_look(struct cgroup_memory *c, const pid_t *pids, size_t count, uint64_t now_ns);
void cgroup_memory_close(struct cgroup_memory *c);

/* CPU quotas (CFS bandwidth) of the cgroups of targets, read from user space. */

struct quotas;

/* Returns NULL without quotas: this host has no cgroups with a CPU controller, or no memory is left. `proc`
 * is where proc is mounted. */
struct quotas *quotas_open(struct ft_writer *w, struct proc_metrics *m, const char *proc);

/* Checks the cgroups of each process and its threads, and their ancestors. Writes a note for each quota that
 * is new, changed or gone. For each quota in force, writes the kernel's count and total time of throttling as
 * series. Returns whether any quota is in force. `q` may be NULL. Does nothing while the budget of looks does
 * not allow it, unless there are more or fewer processes. */
bool quotas_look(struct quotas *q, const pid_t *pids, size_t count, uint64_t now_ns);
/* A new file begins: the next call writes the quotas in force again. */
void quotas_begin_segment(struct quotas *q);
void quotas_close(struct quotas *q);

/* A ring of recordings: a directory of consecutive segments, of which the oldest are deleted. A segment is an
 * ordinary recording and never changes after it is sealed. So a snapshot links files and does not delay the
 * recorder. The ring's length is measured in recorded time before the newest segment: while nothing is
 * recorded, nothing is deleted, and a crash loses no older segments. */

/* The owner of the files. */
struct file_owner {
	uid_t uid;
	gid_t gid;
};

/* Finds a user by name. NULL: the user who called sudo, otherwise "forktail" if it exists, otherwise the
 * current user. -ENOENT: no such user. */
int file_owner_find(const char *name, struct file_owner *user);

struct segments;

/* Opens a directory and creates it if only the last component is missing. It must belong to the user, be
 * closed to others, and not be in use. Returns a negative errno, and in *why the reason, to follow "cannot
 * use the directory DIR for a ring: ". */
int segments_open(struct segments **out, const char *path, const struct ring_limits *limits,
		  const struct file_owner *user, const char **why);
void segments_close(struct segments *r);

/* From now on, files are created as the owner, by this thread and threads started later. This cannot be
 * undone. */
int segments_become_owner(const struct segments *r);

/* Begins the first segment, after the existing ones. */
int segments_begin(struct segments *r, struct ft_writer **out, const char *manifest, uint64_t now_ns);

/* Whether the next segment is due. */
bool segments_due(const struct segments *r, const struct ft_writer *w, uint64_t now_ns);
/* Seals the current segment, begins the next and deletes segments beyond the limits: all in the writer's
 * thread. */
int segments_next(struct segments *r, struct ft_writer *w, const char *manifest, const char *summary,
		  uint64_t now_ns);

/* Number of the current segment, and of the next. */
uint64_t segments_number(const struct segments *r);

/* After a write error: once per second deletes the oldest segment if space is missing, and requests the next
 * segment. */
bool segments_recover(struct segments *r, struct ft_writer *w, uint64_t now_ns);

/* The owner of the ring. */
const struct file_owner *segments_owner(const struct segments *r);
/* The directory, for code that may create files in it. */
int segments_directory(const struct segments *r);

/* For tests: the number of sealed segments and their bytes. */
size_t segments_count(const struct segments *r);
uint64_t segments_bytes(const struct segments *r);

/* Turns ring buffer events into records: adds names for kernel numbers and writes shared details of spans
 * once. */

/* How far a CPU slice has been written. */
struct slice_extent {
	uint64_t start_ns, end_ns;
};

struct drain {
	struct ft_writer *writer;
	struct threads *threads;
	struct samples *samples; /* NULL: not wanted */
	struct sockets *sockets; /* NULL: not wanted */
	struct target_files *files;
	struct suspensions suspensions;
	struct span_detail *details; /* hash table of those written */
	uint32_t detail_count;
	bool details_full;
	struct slice_extent (*slices_written)[FT_CPU_SLICES]; /* by CPU and position in its ring */
	struct ft_span *open; /* when the threads' open states were last requested */
	size_t open_count, open_room;
	uint64_t spans, tallies, io;
	bool slow; /* an iteration of 1 ms or more has ended or been sampled since the last tick */
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

/* SPDX-License-Identifier: MIT */
/* CPU quotas of targets, from the cgroup file system of version 1 or 2. The kernel programs themselves detect
 * that a thread was throttled and for how long. This file finds the cause (which cgroup, its quota) and
 * whether throttling needs to be checked at all: a host without quotas pays nothing. A quota of any cgroup on
 * the path to the root applies. Reading the cgroup of every thread is expensive, and threads rarely change
 * it: a new thread is in the cgroup of its creator. So the cgroups of threads are read less often than
 * quotas, and both less often where that takes long. */
#include "loader/output/quota.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/system/affinity.h"
#include "loader/system/cpu_time.h"
#include "loader/system/grow.h"
#include "loader/targets/cgroup_files.h"
#include "recording/json/json_block.h"

enum { SHARE = 1000 }; /* each of the two takes at most one part in this many of a CPU's time */

/* The quotas in force for a process. */
struct quota {
	pid_t pid;
	char cgroup[CGROUP_PATH_BYTES]; /* path from the hierarchy's root */
	long long quota_us, period_us;
	bool seen; /* in this pass */
};

/* A cgroup of threads of a process that is not the process' own. */
struct thread_cgroup {
	pid_t pid;
	char cgroup[CGROUP_PATH_BYTES];
};

struct quotas {
	struct ft_writer *writer;
	struct proc_metrics *metrics;
	struct cgroup_hierarchy cgroups;
	struct quota *all;
	size_t count, room;
	uint64_t due_ns; /* when quotas are read next */
	struct thread_cgroup *of_threads;
	size_t thread_count, thread_room;
	uint64_t threads_due_ns; /* when the cgroups of threads are read next */
	size_t processes;	 /* when they were last read */
};

struct quotas *quotas_open(struct ft_writer *w, struct proc_metrics *m, const char *proc)
{
	struct quotas *q = calloc(1, sizeof *q);
	if (!q)
		return NULL;
	q->writer = w;
	q->metrics = m;
	if (!cgroup_hierarchy_find(&q->cgroups, proc, "cpu")) {
		free(q);
		return NULL;
	}
	return q;
}

/* Reads a cgroup's own quota. False if it has none. */
static bool read_quota(const struct quotas *q, const char *cgroup, long long *quota_us, long long *period_us)
{
	char text[64];
	if (q->cgroups.v2)
		return cgroup_file_read(&q->cgroups, cgroup, "cpu.max", text, sizeof text) &&
		       sscanf(text, "%lld %lld", quota_us, period_us) == 2;
	if (!cgroup_file_read(&q->cgroups, cgroup, "cpu.cfs_quota_us", text, sizeof text))
		return false;
	*quota_us = atoll(text);
	*period_us =
	    cgroup_file_read(&q->cgroups, cgroup, "cpu.cfs_period_us", text, sizeof text) ? atoll(text) : 0;
	return *quota_us > 0;
}

static void write_note(struct quotas *q, const struct quota *x)
{
	write_json_block(q->writer, FT_BLOCK_NOTE,
			 json_pack("{s:I, s:s, s:i, s:o, s:I, s:I}", "t_ns", (json_int_t)ft_now_ns(), "kind",
				   "cpu-quota", "pid", (int)x->pid, "cgroup",
				   json_text(x->cgroup, strlen(x->cgroup)), "quota_us",
				   (json_int_t)x->quota_us, "period_us", (json_int_t)x->period_us));
}

/* Returns whether this is the first time it is found in this pass. */
static bool note_quota(struct quotas *q, pid_t pid, const char *cgroup, long long quota_us,
		       long long period_us)
{
	struct quota *x = NULL;
	for (size_t i = 0; i < q->count && !x; i++)
		if (q->all[i].pid == pid && strcmp(q->all[i].cgroup, cgroup) == 0)
			x = &q->all[i];
	if (!x) {
		if (!grow(&q->all, &q->room, q->count, sizeof *q->all))
			return false;
		x = &q->all[q->count++];
		*x = (struct quota){.pid = pid};
		snprintf(x->cgroup, sizeof x->cgroup, "%s", cgroup);
	}
	bool first = !x->seen;
	x->seen = true;
	if (x->quota_us == quota_us && x->period_us == period_us)
		return first;
	x->quota_us = quota_us;
	x->period_us = period_us;
	write_note(q, x);
	return first;
}

/* The kernel's own counters: version 1 in ns, version 2 in us. */
static void sample_throttling(struct quotas *q, const char *cgroup)
{
	char text[1024];
	double times, ns;
	if (!cgroup_file_read(&q->cgroups, cgroup, "cpu.stat", text, sizeof text))
		return;
	if (cgroup_number(text, "nr_throttled", &times))
		proc_metrics_level(q->metrics, "cgroup.throttles", "", times, "cgroup", cgroup);
	if (cgroup_number(text, q->cgroups.v2 ? "throttled_usec" : "throttled_time", &ns))
		proc_metrics_level(q->metrics, "cgroup.throttled", "ns", q->cgroups.v2 ? ns * 1000 : ns,
				   "cgroup", cgroup);
}

/* Visits the quotas of a cgroup and its ancestors except the root, which has none. Shortens the path. */
static void look_up(struct quotas *q, pid_t pid, char *cgroup)
{
	for (char *end; cgroup[0] == '/' && cgroup[1]; *end = 0) {
		long long quota_us, period_us;
		if (read_quota(q, cgroup, &quota_us, &period_us) &&
		    note_quota(q, pid, cgroup, quota_us, period_us))
			sample_throttling(q, cgroup);
		end = strrchr(cgroup, '/');
	}
}

/* Whether threads may be in other cgroups than their process: always in version 1, and in version 2 if the
 * cgroup is threaded, has threaded child cgroups, or is the root, which has no type. */
static bool threads_may_differ(const struct quotas *q, const char *cgroup)
{
	char type[32];
	return !q->cgroups.v2 || !cgroup_file_read(&q->cgroups, cgroup, "cgroup.type", type, sizeof type) ||
	       strcmp(type, "domain\n") != 0;
}

static void note_thread_cgroup(struct quotas *q, pid_t pid, const char *cgroup)
{
	for (size_t i = q->thread_count; i--;)
		if (q->of_threads[i].pid == pid && strcmp(q->of_threads[i].cgroup, cgroup) == 0)
			return;
	if (!grow(&q->of_threads, &q->thread_room, q->thread_count, sizeof *q->of_threads))
		return;
	struct thread_cgroup *t = &q->of_threads[q->thread_count++];
	t->pid = pid;
	memcpy(t->cgroup, cgroup, sizeof t->cgroup);
}

static void find_thread_cgroups(struct quotas *q, pid_t pid)
{
	char path[PATH_MAX], cgroup[CGROUP_PATH_BYTES], of_process[CGROUP_PATH_BYTES];
	snprintf(path, sizeof path, "%d", pid);
	if (!cgroup_hierarchy_of(&q->cgroups, path, of_process) || !threads_may_differ(q, of_process))
		return;
	snprintf(path, sizeof path, "%s/%d/task", q->cgroups.proc, pid);
	DIR *threads = opendir(path);
	for (struct dirent *e; threads && (e = readdir(threads));) {
		cpu_offer_in_loop();
		snprintf(path, sizeof path, "%d/task/%s", pid, e->d_name);
		if (e->d_name[0] != '.' && cgroup_hierarchy_of(&q->cgroups, path, cgroup) &&
		    strcmp(cgroup, of_process))
			note_thread_cgroup(q, pid, cgroup);
	}
	if (threads)
		closedir(threads);
}

static void find_all_thread_cgroups(struct quotas *q, const pid_t *pids, size_t count, uint64_t now_ns)
{
	uint64_t cpu_ns = own_cpu_ns();
	q->thread_count = 0;
	for (size_t i = 0; i < count; i++)
		find_thread_cgroups(q, pids[i]);
	q->processes = count;
	q->threads_due_ns = now_ns + SHARE * (own_cpu_ns() - cpu_ns);
}

static void look_at_all(struct quotas *q, const pid_t *pids, size_t count)
{
	char pid[16], cgroup[CGROUP_PATH_BYTES];
	for (size_t i = 0; i < count; i++) {
		snprintf(pid, sizeof pid, "%d", pids[i]);
		if (cgroup_hierarchy_of(&q->cgroups, pid, cgroup))
			look_up(q, pids[i], cgroup);
	}
	for (size_t i = 0; i < q->thread_count; i++) {
		memcpy(cgroup, q->of_threads[i].cgroup, sizeof cgroup);
		look_up(q, q->of_threads[i].pid, cgroup);
	}
}

/* Writes that quotas which were not seen in this pass no longer apply. */
static void forget_unseen(struct quotas *q)
{
	for (size_t i = 0; i < q->count;) {
		struct quota *x = &q->all[i];
		if (x->seen) {
			i++;
			continue;
		}
		x->quota_us = 0;
		write_note(q, x);
		*x = q->all[--q->count];
	}
}

bool quotas_look(struct quotas *q, const pid_t *pids, size_t count, uint64_t now_ns)
{
	if (!q)
		return false;
	bool others = count != q->processes;
	if (now_ns >= q->threads_due_ns || others)
		find_all_thread_cgroups(q, pids, count, now_ns);
	if (now_ns < q->due_ns && !others)
		return q->count > 0;
	uint64_t cpu_ns = own_cpu_ns();
	for (size_t i = 0; i < q->count; i++)
		q->all[i].seen = false;
	look_at_all(q, pids, count);
	forget_unseen(q);
	q->due_ns = now_ns + SHARE * (own_cpu_ns() - cpu_ns);
	return q->count > 0;
}

void quotas_begin_segment(struct quotas *q)
{
	if (!q)
		return;
	q->due_ns = 0;
	for (size_t i = 0; i < q->count; i++)
		q->all[i].quota_us = -1; /* so that it differs from the value found */
}

void quotas_close(struct quotas *q)
{
	if (!q)
		return;
	free(q->all);
	free(q->of_threads);
	free(q);
}

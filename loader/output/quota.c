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
#include "loader/system/text.h"
#include "loader/targets/cgroups.h"
#include "recording/json/json_block.h"

enum {
	PATH_BYTES = 256,
	SHARE = 1000, /* each of the two takes at most one part in this many of a CPU's time */
};

/* The quotas in force for a process. */
struct quota {
	pid_t pid;
	char cgroup[PATH_BYTES]; /* path from the hierarchy's root */
	long long quota_us, period_us;
	bool seen; /* in this pass */
};

/* A cgroup of threads of a process that is not the process' own. */
struct thread_cgroup {
	pid_t pid;
	char cgroup[PATH_BYTES];
};

struct quotas {
	struct ft_writer *writer;
	struct proc_metrics *metrics;
	bool v2;
	char proc[PATH_BYTES];
	char mount[PATH_BYTES]; /* where the hierarchy with the CPU controller is mounted */
	char root[PATH_BYTES];	/* which part of it is mounted: "/" except in a container */
	struct quota *all;
	size_t count, room;
	uint64_t due_ns; /* when quotas are read next */
	struct thread_cgroup *of_threads;
	size_t thread_count, thread_room;
	uint64_t threads_due_ns; /* when the cgroups of threads are read next */
	size_t processes;	 /* when they were last read */
};

/* Whether a comma-separated list contains this word. */
static bool lists(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = list; (at = strstr(at, word)); at += length)
		if ((at == list || at[-1] == ',') && strchr(",\n:", at[length]))
			return true;
	return false;
}

/* Finds the hierarchy with the CPU controller: a version 1 mount with it, otherwise the unified hierarchy. */
static bool find_hierarchy(struct quotas *q)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/self/mountinfo", q->proc);
	FILE *f = fopen(path, "re");
	char line[4096], root[PATH_BYTES], mount[PATH_BYTES], type[32], options[1024];
	bool found = false;
	while (f && fgets(line, sizeof line, f)) {
		const char *rest = strstr(line, " - ");
		if (!rest || sscanf(line, "%*d %*d %*s %255s %255s", root, mount) != 2 ||
		    sscanf(rest, " - %31s %*s %1023s", type, options) != 2)
			continue;
		bool v1 = strcmp(type, "cgroup") == 0 && lists(options, "cpu");
		if (!v1 && (found || strcmp(type, "cgroup2") != 0))
			continue;
		q->v2 = !v1;
		memcpy(q->mount, mount, sizeof mount);
		memcpy(q->root, root, sizeof root);
		found = true;
		if (v1)
			break;
	}
	if (f)
		fclose(f);
	return found;
}

struct quotas *quotas_open(struct ft_writer *w, struct proc_metrics *m, const char *proc)
{
	struct quotas *q = calloc(1, sizeof *q);
	if (!q)
		return NULL;
	q->writer = w;
	q->metrics = m;
	snprintf(q->proc, sizeof q->proc, "%s", proc);
	if (!find_hierarchy(q)) {
		free(q);
		return NULL;
	}
	return q;
}

/* Finds the cgroup in the hierarchy ("/a/b") of the process or thread with this directory in proc. False if
 * it has none. */
static bool find_cgroup(const struct quotas *q, const char *directory, char cgroup[PATH_BYTES])
{
	char file[PATH_MAX], path[CGROUP_BYTES];
	snprintf(file, sizeof file, "%s/%s/cgroup", q->proc, directory);
	if (!cgroup_in(file, q->v2 ? "" : "cpu", path))
		return false;
	size_t root = strcmp(q->root, "/") ? strlen(q->root) : 0;
	snprintf(cgroup, PATH_BYTES, "%.*s", PATH_BYTES - 1,
		 strncmp(path, q->root, root) ? path : path + root);
	return true;
}

/* Reads a file of a cgroup. False if the file does not exist. */
static bool read_file(const struct quotas *q, const char *cgroup, const char *file, char *text, size_t size)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s%s/%s", q->mount, cgroup, file);
	return read_text(path, text, size) >= 0;
}

/* Reads a cgroup's own quota. False if it has none. */
static bool read_quota(const struct quotas *q, const char *cgroup, long long *quota_us, long long *period_us)
{
	char text[64];
	if (q->v2)
		return read_file(q, cgroup, "cpu.max", text, sizeof text) &&
		       sscanf(text, "%lld %lld", quota_us, period_us) == 2;
	if (!read_file(q, cgroup, "cpu.cfs_quota_us", text, sizeof text))
		return false;
	*quota_us = atoll(text);
	*period_us = read_file(q, cgroup, "cpu.cfs_period_us", text, sizeof text) ? atoll(text) : 0;
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
	if (!read_file(q, cgroup, "cpu.stat", text, sizeof text))
		return;
	const char *count = strstr(text, "nr_throttled "),
		   *sum = strstr(text, q->v2 ? "throttled_usec " : "throttled_time ");
	if (count && sscanf(count, "%*s %lf", &times) == 1)
		proc_metrics_level(q->metrics, "cgroup.throttles", "", times, "cgroup", cgroup);
	if (sum && sscanf(sum, "%*s %lf", &ns) == 1)
		proc_metrics_level(q->metrics, "cgroup.throttled", "ns", q->v2 ? ns * 1000 : ns, "cgroup",
				   cgroup);
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
	return !q->v2 || !read_file(q, cgroup, "cgroup.type", type, sizeof type) ||
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
	char path[PATH_MAX], cgroup[PATH_BYTES], of_process[PATH_BYTES];
	snprintf(path, sizeof path, "%d", pid);
	if (!find_cgroup(q, path, of_process) || !threads_may_differ(q, of_process))
		return;
	snprintf(path, sizeof path, "%s/%d/task", q->proc, pid);
	DIR *threads = opendir(path);
	for (struct dirent *e; threads && (e = readdir(threads));) {
		cpu_offer_in_loop();
		snprintf(path, sizeof path, "%d/task/%s", pid, e->d_name);
		if (e->d_name[0] != '.' && find_cgroup(q, path, cgroup) && strcmp(cgroup, of_process))
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
	char pid[16], cgroup[PATH_BYTES];
	for (size_t i = 0; i < count; i++) {
		snprintf(pid, sizeof pid, "%d", pids[i]);
		if (find_cgroup(q, pid, cgroup))
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

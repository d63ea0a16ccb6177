/* SPDX-License-Identifier: MIT */
/* Reads /proc ten times per second. Files are opened once and read again with pread, because opening them
 * each time would be half the cost. Every metric is a named value, either a level or a counter whose rate is
 * wanted, so one table of series serves all files. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "loader/output.h"
#include "loader/system.h"
#include "loader/targets.h"
#include "recording/json_block.h"

/* Limit of bytes per file. Beyond it, the last of thousands of CPUs or disks are not recorded. */
enum { TEXT_MAX = 16 << 20 };

/* Containers add and remove network devices with ever new names. Devices beyond this number are not
 * recorded. */
enum { SERIES_MAX = 40000 };

struct series {
	char key[320]; /* name and label values; the longest is a cgroup's path */
	uint32_t id;
	double counter;	    /* last reading, for rates */
	uint64_t read_ns;   /* when; 0: never */
	double value;	    /* last value written */
	bool written, used; /* used in this file, where it was announced */
	UT_hash_handle hh;
};

enum source { STAT, MEMINFO, VMSTAT, DISKSTATS, SOFTIRQS, NETDEV, SOURCES };
static const char *const files[SOURCES] = {"stat", "meminfo", "vmstat", "diskstats", "softirqs", "net/dev"};

struct proc_metrics {
	struct ft_writer *writer;
	struct series *by_key;	/* hash table */
	uint32_t ids;		/* number of ids used in this file */
	int proc, fds[SOURCES]; /* the proc directory, and files that stay open */
	uint64_t now_ns, targets_due_ns;
	double cpu_total[2]; /* jiffies of all states: at the last sample, now */
	struct text text;    /* of the file being read */
};

static struct series *add(struct proc_metrics *m, const char *key)
{
	struct series *s = HASH_COUNT(m->by_key) < SERIES_MAX ? calloc(1, sizeof *s) : NULL;
	if (!s)
		return NULL;
	memcpy(s->key, key, strlen(key) + 1);
	HASH_ADD_STR(m->by_key, key, s);
	if (!hash_added(s)) {
		free(s);
		return NULL;
	}
	return s;
}

/* Returns the series of this name and labels. Its first use announces it in the recording. */
static struct series *series_of(struct proc_metrics *m, const char *name, const char *unit,
				const char *label1, const char *value1, const char *label2,
				const char *value2)
{
	struct series *s;
	char key[sizeof s->key];
	snprintf(key, sizeof key, "%s/%s/%s", name, value1 ? value1 : "", value2 ? value2 : "");
	HASH_FIND_STR(m->by_key, key, s);
	if (!s)
		s = add(m, key);
	if (!s || s->used)
		return s;
	s->used = true;
	s->id = ++m->ids;
	json_t *labels = json_object();
	if (label1)
		json_put_text(labels, label1, value1);
	if (label2)
		json_put_text(labels, label2, value2);
	write_json_definition(m->writer, FT_BLOCK_SERIES,
			      json_pack("{s:i, s:s, s:s, s:o}", "id", (int)s->id, "name", name, "unit", unit,
					"labels", labels));
	return s;
}

static void write_value(struct proc_metrics *m, struct series *s, double value)
{
	if (s->written && s->value == value)
		return;
	s->value = value;
	s->written = true;
	struct ft_sample sample = {.t_ns = m->now_ns, .value = value, .series = s->id};
	ft_writer_record(m->writer, FT_BLOCK_SAMPLE, &sample);
}

void proc_metrics_level(struct proc_metrics *m, const char *name, const char *unit, double value,
			const char *label, const char *label_value)
{
	struct series *s = series_of(m, name, unit, label, label_value, NULL, NULL);
	if (s)
		write_value(m, s, value);
}

/* Writes a counter: its growth times `scale` per second since the last sample. */
static void rate(struct proc_metrics *m, const char *name, const char *unit, double counter, double scale,
		 const char *label1, const char *value1, const char *label2, const char *value2)
{
	struct series *s = series_of(m, name, unit, label1, value1, label2, value2);
	if (!s)
		return;
	if (s->read_ns && m->now_ns > s->read_ns)
		write_value(m, s, (counter - s->counter) * scale * 1e9 / (double)(m->now_ns - s->read_ns));
	s->counter = counter;
	s->read_ns = m->now_ns;
}

static bool read_source(struct proc_metrics *m, enum source which)
{
	text_read(&m->text, m->fds[which], TEXT_MAX);
	return m->text.length > 0;
}

static void sample_cpu(struct proc_metrics *m)
{
	static const char *const names[] = {
	    "host.cpu.user",   NULL,	       "host.cpu.system",  "host.cpu.idle",
	    "host.cpu.iowait", "host.cpu.irq", "host.cpu.softirq", "host.cpu.steal"};
	double v[8];
	if (!read_source(m, STAT) || sscanf(m->text.bytes, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &v[0],
					    &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
		return;
	v[0] += v[1]; /* nice counts as user time */
	m->cpu_total[0] = m->cpu_total[1];
	m->cpu_total[1] = v[0] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7];
	double total = m->cpu_total[1] - m->cpu_total[0];
	for (int i = 0; i < 8; i++) {
		struct series *s =
		    names[i] ? series_of(m, names[i], "percent", NULL, NULL, NULL, NULL) : NULL;
		if (!s)
			continue;
		if (s->read_ns && total > 0)
			write_value(m, s, 100 * (v[i] - s->counter) / total);
		s->counter = v[i];
		s->read_ns = m->now_ns;
	}
}

/* "Name: 123 kB" or "name 123" lines. */
static bool find_number(const char *text, const char *name, double *value)
{
	size_t length = strlen(name);
	for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
		if (strncmp(line, name, length) == 0 && (line[length] == ':' || line[length] == ' '))
			return sscanf(line + length + 1, "%lf", value) == 1;
	return false;
}

static void sample_memory(struct proc_metrics *m)
{
	static const char *const levels[][2] = {
	    {"MemAvailable", "host.memory.available"}, {"MemFree", "host.memory.free"},
	    {"Cached", "host.memory.cached"},	       {"Dirty", "host.memory.dirty"},
	    {"Writeback", "host.memory.writeback"},    {"SwapFree", "host.memory.swap_free"}};
	static const char *const rates[][2] = {{"pgfault", "host.page_faults"},
					       {"pgmajfault", "host.major_faults"},
					       {"pswpin", "host.swap_in"},
					       {"pswpout", "host.swap_out"}};
	static const char *const counts[][2] = {{"oom_kill", "host.oom_kills"},
						{"drop_pagecache", "host.page_cache_drops"},
						{"drop_slab", "host.slab_drops"}};
	double value;
	if (read_source(m, MEMINFO))
		for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
			if (find_number(m->text.bytes, levels[i][0], &value))
				proc_metrics_level(m, levels[i][1], "bytes", value * 1024, NULL, NULL);
	if (!read_source(m, VMSTAT))
		return;
	for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
		if (find_number(m->text.bytes, rates[i][0], &value))
			rate(m, rates[i][1], "1/s", value, 1, NULL, NULL, NULL, NULL);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		if (find_number(m->text.bytes, counts[i][0], &value))
			proc_metrics_level(m, counts[i][1], "", value, NULL, NULL);
}

static void sample_disks(struct proc_metrics *m)
{
	if (!read_source(m, DISKSTATS))
		return;
	char *rest;
	for (char *line = strtok_r(m->text.bytes, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char name[32];
		double reads, writes;
		if (sscanf(line, "%*d %*d %31s %*f %*f %lf %*f %*f %*f %lf", name, &reads, &writes) != 3 ||
		    (reads == 0 && writes == 0))
			continue;
		rate(m, "host.disk.read", "bytes/s", reads, 512, "device", name, NULL, NULL);
		rate(m, "host.disk.write", "bytes/s", writes, 512, "device", name, NULL, NULL);
	}
}

/* Reads a table of vectors per CPU. Its first line names the CPUs. */
static void sample_softirqs(struct proc_metrics *m)
{
	if (!read_source(m, SOFTIRQS))
		return;
	char *rest;
	strtok_r(m->text.bytes, "\n", &rest);
	for (char *line; (line = strtok_r(NULL, "\n", &rest));) {
		char vector[16], cpu_name[16];
		int at = 0;
		if (sscanf(line, " %15[^:]:%n", vector, &at) != 1 || !at)
			continue;
		char *next = line + at;
		for (int cpu = 0;; cpu++) {
			char *from = next;
			double n = strtod(from, &next);
			if (next == from)
				break;
			snprintf(cpu_name, sizeof cpu_name, "%d", cpu);
			rate(m, "host.softirq", "1/s", n, 1, "cpu", cpu_name, "vector", vector);
		}
	}
}

static void sample_network(struct proc_metrics *m)
{
	if (!read_source(m, NETDEV))
		return;
	char *rest;
	for (char *line = strtok_r(m->text.bytes, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char name[32];
		double receive, transmit;
		if (sscanf(line, " %31[^:]: %lf %*f %*f %*f %*f %*f %*f %*f %lf", name, &receive,
			   &transmit) != 3)
			continue;
		rate(m, "host.network.receive", "bytes/s", receive, 1, "interface", name, NULL, NULL);
		rate(m, "host.network.transmit", "bytes/s", transmit, 1, "interface", name, NULL, NULL);
	}
}

static void sample_target(struct proc_metrics *m, pid_t pid)
{
	char path[48], name[16];
	snprintf(path, sizeof path, "%d/stat", pid);
	text_read_at(&m->text, m->proc, path, TEXT_MAX);
	if (!m->text.length)
		return;
	const char *rest = strrchr(m->text.bytes, ')'); /* comm may contain any characters */
	double minor, major, user, system, rss;
	if (!rest || sscanf(rest + 2,
			    "%*c %*d %*d %*d %*d %*d %*u %lf %*f %lf %*f %lf %lf %*d %*d %*d %*d %*d %*d %*u "
			    "%*u %lf",
			    &minor, &major, &user, &system, &rss) != 5)
		return;
	snprintf(name, sizeof name, "%d", pid);
	rate(m, "target.cpu", "percent", user + system, 100.0 / (double)sysconf(_SC_CLK_TCK), "pid", name,
	     NULL, NULL);
	rate(m, "target.minor_faults", "1/s", minor, 1, "pid", name, NULL, NULL);
	rate(m, "target.major_faults", "1/s", major, 1, "pid", name, NULL, NULL);
	proc_metrics_level(m, "target.rss", "bytes", rss * (double)sysconf(_SC_PAGESIZE), "pid", name);
}

/* Each time, or so rarely that it takes at most one part in SHARE of a CPU: the kernel adds up the times of
 * all threads of a process, a millisecond for 4,000, and blocks interrupts meanwhile. */
static void sample_targets(struct proc_metrics *m, const pid_t *pids, size_t count)
{
	enum { SHARE = 500, CHEAP_NS = 200000 };
	if (m->now_ns < m->targets_due_ns)
		return;
	const uint64_t begun_ns = thread_cpu_ns();
	for (size_t i = 0; i < count; i++) {
		sample_target(m, pids[i]);
		cpu_offer();
	}
	const uint64_t took_ns = thread_cpu_ns() - begun_ns;
	m->targets_due_ns = took_ns > CHEAP_NS ? m->now_ns + SHARE * took_ns : 0;
}

struct proc_metrics *proc_metrics_open(struct ft_writer *w, const char *proc)
{
	struct proc_metrics *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	m->writer = w;
	m->now_ns = ft_now_ns();
	m->proc = open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < SOURCES; i++)
		m->fds[i] = openat(m->proc, files[i], O_RDONLY | O_CLOEXEC);
	return m;
}

void proc_metrics_sample(struct proc_metrics *m, const pid_t *pids, size_t count)
{
	m->now_ns = ft_now_ns();
	sample_cpu(m);
	sample_memory(m);
	sample_disks(m);
	sample_softirqs(m);
	sample_network(m);
	cpu_offer();
	sample_targets(m, pids, count);
}

void proc_metrics_begin_segment(struct proc_metrics *m)
{
	struct series *s, *next;
	m->ids = 0;
	HASH_ITER(hh, m->by_key, s, next)
	{
		if (s->used) {
			s->used = s->written = false;
			continue;
		}
		HASH_DEL(m->by_key, s);
		free(s);
	}
}

void proc_metrics_close(struct proc_metrics *m)
{
	if (!m)
		return;
	for (int i = 0; i < SOURCES; i++)
		if (m->fds[i] >= 0)
			close(m->fds[i]);
	if (m->proc >= 0)
		close(m->proc);
	hash_free_all(struct series, m->by_key);
	free(m->text.bytes);
	free(m);
}

/* A server in a cgroup at its memory limit reclaims memory in its own allocations, or is killed, while the
 * host has plenty. The kernel counts both per cgroup; a limit of any cgroup on the path to the root applies,
 * and its counters include those of the cgroups below it (version 2). Files are kept open and read again with
 * pread. The cgroups of processes rarely change, so they are looked up less often. */

enum {
	MEMORY_SHARE = 1000, /* each of the two takes at most one part in this many of a CPU's time */
	MOST_GROUPS = 256,
	TEXT_MOST = 1 << 17,
	FILES = 5,
};
static const uint64_t FIND_EVERY_NS = 2000000000;

/* A file with counters: a line of it (key), or all of it (key ""). */
struct counted_file {
	const char *name;
	bool if_limited; /* read only in a cgroup with a limit, which is read before it */
	struct {
		const char *key, *series, *unit; /* "" of a count */
	} counters[3];
};
static const struct counted_file v1_files[FILES] = {
    {"memory.failcnt", false, {{"", "cgroup.memory.limit_hits", ""}}},
    {"memory.oom_control", false, {{"oom_kill", "cgroup.memory.oom_kills", ""}}},
    {"memory.limit_in_bytes", false, {{"", "cgroup.memory.limit", "bytes"}}},
    {"memory.usage_in_bytes", true, {{"", "cgroup.memory.usage", "bytes"}}},
    {"memory.stat", true, {{"total_inactive_file", "cgroup.memory.inactive_file", "bytes"}}}};
static const struct counted_file v2_files[FILES] = {
    {"memory.events",
     false,
     {{"max", "cgroup.memory.limit_hits", ""},
      {"high", "cgroup.memory.high_hits", ""},
      {"oom_kill", "cgroup.memory.oom_kills", ""}}},
    {"memory.max", false, {{"", "cgroup.memory.limit", "bytes"}}},
    {"memory.current", true, {{"", "cgroup.memory.usage", "bytes"}}},
    {"memory.stat", true, {{"inactive_file", "cgroup.memory.inactive_file", "bytes"}}}};
/* Version 1 says so where it has no limit; version 2 says "max", which is no number. */
static const double NO_LIMIT_BYTES = 1e18;

struct group {
	char cgroup[CGROUP_PATH_BYTES];
	int fds[FILES]; /* -1: it has no such file */
	bool seen;	/* when cgroups were last looked up */
};

struct cgroup_memory {
	struct proc_metrics *metrics;
	struct cgroup_hierarchy hierarchy;
	const struct counted_file *files; /* FILES of them */
	struct group *all;
	size_t count, room;
	struct text text;
	size_t processes; /* when cgroups were last looked up */
	uint64_t find_due_ns, read_due_ns;
};

struct cgroup_memory *cgroup_memory_open(struct proc_metrics *m, const char *proc)
{
	struct cgroup_memory *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->metrics = m;
	if (!cgroup_hierarchy_find(&c->hierarchy, proc, "memory")) {
		free(c);
		return NULL;
	}
	c->files = c->hierarchy.v2 ? v2_files : v1_files;
	return c;
}

uint64_t cgroup_memory_limit(const char *proc)
{
	struct cgroup_hierarchy h;
	char cgroup[CGROUP_PATH_BYTES], text[64];
	uint64_t least = UINT64_MAX;
	if (!cgroup_hierarchy_find(&h, proc, "memory") || !cgroup_hierarchy_of(&h, "self", cgroup))
		return least;
	for (; cgroup[0] == '/' && cgroup[1]; *strrchr(cgroup, '/') = 0) {
		/* "max" in version 2 is no number; no limit in version 1 is a huge one. */
		if (!cgroup_file_read(&h, cgroup, h.v2 ? "memory.max" : "memory.limit_in_bytes", text,
				      sizeof text))
			continue;
		const uint64_t limit = strtoull(text, NULL, 10);
		least = limit && limit < least ? limit : least;
	}
	return least;
}

static struct group *find(struct cgroup_memory *c, const char *cgroup)
{
	for (size_t i = 0; i < c->count; i++)
		if (strcmp(c->all[i].cgroup, cgroup) == 0)
			return &c->all[i];
	return NULL;
}

static void close_files(const struct group *g)
{
	for (int i = 0; i < FILES; i++)
		if (g->fds[i] >= 0)
			close(g->fds[i]);
}

static int open_file(const struct cgroup_memory *c, const struct group *g, int i)
{
	char path[PATH_MAX];
	if (!c->files[i].name)
		return -1;
	snprintf(path, sizeof path, "%s%s/%s", c->hierarchy.mount, g->cgroup, c->files[i].name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void add_cgroup(struct cgroup_memory *c, const char *cgroup)
{
	if (c->count >= MOST_GROUPS || !grow(&c->all, &c->room, c->count, sizeof *c->all))
		return;
	struct group *g = &c->all[c->count++];
	*g = (struct group){.seen = true};
	snprintf(g->cgroup, sizeof g->cgroup, "%s", cgroup);
	for (int i = 0; i < FILES; i++)
		g->fds[i] = c->files[i].if_limited ? -1 : open_file(c, g, i);
}

/* Finds the cgroups of processes and their ancestors except the root, which has no limit. */
static void find_groups(struct cgroup_memory *c, const pid_t *pids, size_t count)
{
	for (size_t i = 0; i < c->count; i++)
		c->all[i].seen = false;
	for (size_t i = 0; i < count; i++) {
		char pid[16], cgroup[CGROUP_PATH_BYTES];
		cpu_offer_in_loop();
		snprintf(pid, sizeof pid, "%d", pids[i]);
		if (!cgroup_hierarchy_of(&c->hierarchy, pid, cgroup))
			continue;
		for (; cgroup[0] == '/' && cgroup[1]; *strrchr(cgroup, '/') = 0) {
			struct group *g = find(c, cgroup);
			if (g && g->seen)
				break; /* and its ancestors */
			if (g)
				g->seen = true;
			else
				add_cgroup(c, cgroup);
		}
	}
	for (size_t i = 0; i < c->count;) {
		if (c->all[i].seen) {
			i++;
			continue;
		}
		close_files(&c->all[i]);
		c->all[i] = c->all[--c->count];
	}
}

static void read_group(struct cgroup_memory *c, struct group *g)
{
	bool limited = false;
	for (int i = 0; i < FILES; i++) {
		const struct counted_file *f = &c->files[i];
		if (f->if_limited && !limited)
			continue;
		if (f->if_limited && g->fds[i] < 0) /* few have a limit: descriptors are scarce */
			g->fds[i] = open_file(c, g, i);
		if (g->fds[i] < 0 || !text_read(&c->text, g->fds[i], TEXT_MOST) || !c->text.length)
			continue;
		for (size_t k = 0; k < sizeof f->counters / sizeof *f->counters && f->counters[k].series;
		     k++) {
			const char *key = f->counters[k].key;
			char *end;
			double value = strtod(c->text.bytes, &end);
			const bool known =
			    *key ? cgroup_number(c->text.bytes, key, &value) : end != c->text.bytes;
			if (!known || value >= NO_LIMIT_BYTES)
				continue;
			limited |= !strcmp(f->counters[k].series, "cgroup.memory.limit");
			proc_metrics_level(c->metrics, f->counters[k].series, f->counters[k].unit, value,
					   "cgroup", g->cgroup);
		}
	}
}

void cgroup_memory_look(struct cgroup_memory *c, const pid_t *pids, size_t count, uint64_t now_ns)
{
	if (!c)
		return;
	if (now_ns >= c->find_due_ns || count != c->processes) {
		const uint64_t cpu_ns = own_cpu_ns();
		find_groups(c, pids, count);
		c->processes = count;
		c->find_due_ns = now_ns + FIND_EVERY_NS + MEMORY_SHARE * (own_cpu_ns() - cpu_ns);
	}
	if (now_ns < c->read_due_ns)
		return;
	const uint64_t cpu_ns = own_cpu_ns();
	for (size_t i = 0; i < c->count; i++) {
		cpu_offer_in_loop();
		read_group(c, &c->all[i]);
	}
	c->read_due_ns = now_ns + MEMORY_SHARE * (own_cpu_ns() - cpu_ns);
}

void cgroup_memory_close(struct cgroup_memory *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->count; i++)
		close_files(&c->all[i]);
	free(c->all);
	free(c->text.bytes);
	free(c);
}

/* CPU quotas of targets, from the cgroup file system of version 1 or 2. The kernel programs themselves detect
 * that a thread was throttled and for how long. This file finds the cause (which cgroup, its quota) and
 * whether throttling needs to be checked at all: a host without quotas pays nothing. A quota of any cgroup on
 * the path to the root applies. Reading the cgroup of every thread is expensive, and threads rarely change
 * it: a new thread is in the cgroup of its creator. So the cgroups of threads are read less often than
 * quotas, and both less often where that takes long. */

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

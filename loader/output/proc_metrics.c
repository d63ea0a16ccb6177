/* SPDX-License-Identifier: MIT */
/* Reads /proc ten times per second. Files are opened once and read again with pread, because opening them
 * each time would be half the cost. Every metric is a named value, either a level or a counter whose rate is
 * wanted, so one table of series serves all files. */
#include "loader/output/proc_metrics.h"

#include <fcntl.h>
#include <inttypes.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/system/affinity.h"
#include "loader/system/cpu_time.h"
#include "loader/system/text.h"
#include "recording/json/json_block.h"

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
	struct series *next;
};

enum source { STAT, MEMINFO, VMSTAT, DISKSTATS, SOFTIRQS, NETDEV, SOURCES };
static const char *const files[SOURCES] = {"stat", "meminfo", "vmstat", "diskstats", "softirqs", "net/dev"};

struct proc_metrics {
	struct ft_writer *writer;
	void *tree; /* of struct series, by key */
	struct series *all;
	uint32_t count, ids;	/* number of ids used in this file */
	int proc, fds[SOURCES]; /* the proc directory, and files that stay open */
	uint64_t now_ns, targets_due_ns;
	double cpu_total[2]; /* jiffies of all states: at the last sample, now */
	struct text text;    /* of the file being read */
};

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct series *)a)->key, ((const struct series *)b)->key);
}

static struct series *add(struct proc_metrics *m, const struct series *like)
{
	struct series *s = m->count < SERIES_MAX ? calloc(1, sizeof *s) : NULL;
	if (!s)
		return NULL;
	memcpy(s->key, like->key, sizeof s->key);
	if (!tsearch(s, &m->tree, by_key)) {
		free(s);
		return NULL;
	}
	s->next = m->all;
	m->all = s;
	m->count++;
	return s;
}

/* Returns the series of this name and labels. Its first use announces it in the recording. */
static struct series *series_of(struct proc_metrics *m, const char *name, const char *unit,
				const char *label1, const char *value1, const char *label2,
				const char *value2)
{
	struct series probe;
	snprintf(probe.key, sizeof probe.key, "%s/%s/%s", name, value1 ? value1 : "", value2 ? value2 : "");
	struct series **found = tfind(&probe, &m->tree, by_key), *s = found ? *found : add(m, &probe);
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
	m->ids = 0;
	for (struct series **at = &m->all; *at;) {
		struct series *s = *at;
		if (s->used) {
			s->used = s->written = false;
			at = &s->next;
			continue;
		}
		*at = s->next;
		tdelete(s, &m->tree, by_key);
		free(s);
		m->count--;
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
	tdestroy(m->tree, free);
	free(m->text.bytes);
	free(m);
}

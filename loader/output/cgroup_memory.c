/* SPDX-License-Identifier: MIT */
/* A server in a cgroup at its memory limit reclaims memory in its own allocations, or is killed, while the
 * host has plenty. The kernel counts both per cgroup; a limit of any cgroup on the path to the root applies,
 * and its counters include those of the cgroups below it (version 2). Files are kept open and read again with
 * pread. The cgroups of processes rarely change, so they are looked up less often. */
#include "loader/output/cgroup_memory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/system/affinity.h"
#include "loader/system/cpu_time.h"
#include "loader/system/grow.h"
#include "loader/system/text.h"
#include "loader/targets/cgroup_files.h"

enum {
	SHARE = 1000, /* each of the two takes at most one part in this many of a CPU's time */
	MOST_GROUPS = 256,
	TEXT_MOST = 1 << 17,
	FILES = 2,
};
static const uint64_t FIND_EVERY_NS = 2000000000;

/* A file with counters: a line of it (key), or all of it (key ""). */
struct counted_file {
	const char *name;
	struct {
		const char *key, *series;
	} counters[3];
};
static const struct counted_file v1_files[FILES] = {
    {"memory.failcnt", {{"", "cgroup.memory.limit_hits"}}},
    {"memory.oom_control", {{"oom_kill", "cgroup.memory.oom_kills"}}}};
static const struct counted_file v2_files[FILES] = {{"memory.events",
						     {{"max", "cgroup.memory.limit_hits"},
						      {"high", "cgroup.memory.high_hits"},
						      {"oom_kill", "cgroup.memory.oom_kills"}}}};

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

static void add(struct cgroup_memory *c, const char *cgroup)
{
	if (c->count >= MOST_GROUPS || !grow(&c->all, &c->room, c->count, sizeof *c->all))
		return;
	struct group *g = &c->all[c->count++];
	*g = (struct group){.seen = true};
	snprintf(g->cgroup, sizeof g->cgroup, "%s", cgroup);
	for (int i = 0; i < FILES; i++) {
		char path[PATH_MAX];
		const char *name = c->files[i].name;
		snprintf(path, sizeof path, "%s%s/%s", c->hierarchy.mount, cgroup, name ? name : "");
		g->fds[i] = name ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	}
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
				add(c, cgroup);
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

static void read_group(struct cgroup_memory *c, const struct group *g)
{
	for (int i = 0; i < FILES; i++) {
		const struct counted_file *f = &c->files[i];
		if (g->fds[i] < 0 || !text_read(&c->text, g->fds[i], TEXT_MOST) || !c->text.length)
			continue;
		for (size_t k = 0; k < sizeof f->counters / sizeof *f->counters && f->counters[k].series;
		     k++) {
			const char *key = f->counters[k].key;
			double value = strtod(c->text.bytes, NULL);
			if (!*key || cgroup_number(c->text.bytes, key, &value))
				proc_metrics_level(c->metrics, f->counters[k].series, "", value, "cgroup",
						   g->cgroup);
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
		c->find_due_ns = now_ns + FIND_EVERY_NS + SHARE * (own_cpu_ns() - cpu_ns);
	}
	if (now_ns < c->read_due_ns)
		return;
	const uint64_t cpu_ns = own_cpu_ns();
	for (size_t i = 0; i < c->count; i++) {
		cpu_offer_in_loop();
		read_group(c, &c->all[i]);
	}
	c->read_due_ns = now_ns + SHARE * (own_cpu_ns() - cpu_ns);
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

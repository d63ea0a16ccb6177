/* SPDX-License-Identifier: MIT */
/* Reads /proc twice per second, and ten times while something is slow (record.c). Files are opened once and
 * read again with pread, because opening them each time would be half the cost. A file whose text is still
 * the same is not parsed. Every metric is a named value, either a level or a counter whose rate is wanted, so
 * one table of series serves all files. */
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
	double counter;	     /* last reading, for rates */
	uint64_t parsed_ns;  /* when; 0: never */
	double value;	     /* last value written */
	uint64_t written_ns; /* the time of its last reading that was written; 0: none in this file */
	bool used;	     /* in this file, where it was announced */
	UT_hash_handle hh;
};

/* The series of the values of a file, in their order. The next reading nearly always has the same ones, so a
 * key is made and looked up for new ones only. */
struct places {
	struct place {
		struct series *series;
		uint32_t segment; /* a series may be forgotten after it */
	} * all;
	size_t room, next;
};

/* What values come from. */
struct source {
	int fd;
	struct text text;			 /* as it was read last */
	bool parsed_again;			 /* after its last change, so that its rates are 0 */
	uint64_t read_ns, parsed_ns;		 /* when it was read and parsed last */
	uint64_t last_read_ns, parsed_before_ns; /* the same before this parse */
	struct places places;
};

enum file { STAT, MEMINFO, VMSTAT, DISKSTATS, SOFTIRQS, NETDEV, FILES_READ };
static const char *const files[FILES_READ] = {"stat",	   "meminfo",  "vmstat",
					      "diskstats", "softirqs", "net/dev"};

struct proc_metrics {
	struct ft_writer *writer;
	struct series *by_key; /* hash table */
	uint32_t ids;	       /* number of ids used in this file */
	uint32_t segment;
	int proc; /* the proc directory */
	struct source sources[FILES_READ], targets;
	uint64_t now_ns;
	struct look targets_look;
	double cpu_total; /* jiffies of all states */
	struct text text; /* of the file being read */
};

static void places_free(struct places *p)
{
	free(p->all);
	*p = (struct places){.all = NULL};
}

/* NULL: no memory. */
static struct place *next_place(struct places *p)
{
	const size_t room = p->room;
	if (!grow(&p->all, &p->room, p->next, sizeof *p->all))
		return NULL;
	memset(p->all + room, 0, (p->room - room) * sizeof *p->all);
	return &p->all[p->next++];
}

/* Whether this is the key of that name and those label values. */
static bool is_key(const char *key, const char *name, const char *value1, const char *value2)
{
	const char *const parts[] = {name, value1 ? value1 : "", value2 ? value2 : ""};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		const size_t length = strlen(parts[i]);
		if (strncmp(key, parts[i], length) != 0 || key[length] != (i < 2 ? '/' : '\0'))
			return false;
		key += length + 1;
	}
	return true;
}

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

static void announce(struct proc_metrics *m, struct series *s, const char *name, const char *unit,
		     const char *label1, const char *value1, const char *label2, const char *value2)
{
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
}

/* Returns the series of this name and labels, the next one of `places`. Its first use announces it in the
 * recording. */
static struct series *series_of(struct proc_metrics *m, struct places *places, const char *name,
				const char *unit, const char *label1, const char *value1, const char *label2,
				const char *value2)
{
	struct place *place = next_place(places);
	if (place && place->series && place->segment == m->segment &&
	    is_key(place->series->key, name, value1, value2))
		return place->series;
	struct series *s;
	char key[sizeof s->key];
	snprintf(key, sizeof key, "%s/%s/%s", name, value1 ? value1 : "", value2 ? value2 : "");
	HASH_FIND_STR(m->by_key, key, s);
	if (!s)
		s = add(m, key);
	if (s && !s->used)
		announce(m, s, name, unit, label1, value1, label2, value2);
	if (place)
		*place = (struct place){s, m->segment};
	return s;
}

static void write_sample(struct proc_metrics *m, const struct series *s, uint64_t t_ns, double value)
{
	struct ft_sample sample = {.t_ns = t_ns, .value = value, .series = s->id};
	ft_writer_record(m->writer, FT_BLOCK_SAMPLE, &sample);
}

/* Of equal readings the first and the last are written, so that a reader sees since when a value differs.
 * `before_ns`: the reading before this one. */
static void write_value(struct proc_metrics *m, struct series *s, double value, uint64_t before_ns)
{
	if (s->written_ns && s->value == value)
		return;
	if (s->written_ns && s->written_ns < before_ns)
		write_sample(m, s, before_ns, s->value);
	s->value = value;
	s->written_ns = m->now_ns;
	write_sample(m, s, m->now_ns, value);
}

/* When a series was read before this reading; 0: never. */
static uint64_t read_before(const struct source *from, const struct series *s)
{
	return s->parsed_ns && s->parsed_ns == from->parsed_before_ns ? from->last_read_ns : s->parsed_ns;
}

static void level(struct proc_metrics *m, struct source *from, const char *name, const char *unit,
		  double value, const char *label, const char *label_value)
{
	struct series *s = series_of(m, &from->places, name, unit, label, label_value, NULL, NULL);
	if (!s)
		return;
	write_value(m, s, value, read_before(from, s));
	s->parsed_ns = m->now_ns;
}

/* Writes a counter: its growth times `scale` per second since the last reading. */
static void rate(struct proc_metrics *m, struct source *from, const char *name, const char *unit,
		 double counter, double scale, const char *label1, const char *value1, const char *label2,
		 const char *value2)
{
	struct series *s = series_of(m, &from->places, name, unit, label1, value1, label2, value2);
	if (!s)
		return;
	const uint64_t before_ns = read_before(from, s);
	if (before_ns && m->now_ns > before_ns)
		write_value(m, s, (counter - s->counter) * scale * 1e9 / (double)(m->now_ns - before_ns),
			    before_ns);
	s->counter = counter;
	s->parsed_ns = m->now_ns;
}

/* Begins a parse. */
static void parse_again(const struct proc_metrics *m, struct source *from)
{
	from->last_read_ns = from->read_ns;
	from->parsed_before_ns = from->parsed_ns;
	from->read_ns = from->parsed_ns = m->now_ns;
	from->places.next = 0;
}

/* Returns the text of a file, or NULL if nothing is to be written of it: it has not changed, or cannot be
 * read. */
static const char *read_source(struct proc_metrics *m, enum file which)
{
	struct source *from = &m->sources[which];
	text_read(&m->text, from->fd, TEXT_MAX);
	if (!m->text.length)
		return NULL;
	const bool same = m->text.length == from->text.length &&
			  memcmp(m->text.bytes, from->text.bytes, m->text.length) == 0;
	if (same && from->parsed_again) {
		from->read_ns = m->now_ns;
		return NULL;
	}
	from->parsed_again = same;
	const struct text last = from->text;
	from->text = m->text;
	m->text = last;
	parse_again(m, from);
	return from->text.bytes;
}

/* Parts of a text. sscanf() would look for the end of all of it each time. */

/* Where the next line begins, or NULL after the last one. */
static const char *next_line(const char *at)
{
	const char *end = strchr(at, '\n');
	return end && end[1] ? end + 1 : NULL;
}

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, " ");
}

static const char *skip_words(const char *at, int count)
{
	for (; count > 0; count--) {
		at = skip_blanks(at);
		at += strcspn(at, " \n");
	}
	return at;
}

/* Reads a number and moves *at after it. False: no number. */
static bool take_number(const char **at, double *value)
{
	const char *digit = skip_blanks(*at);
	uint64_t number = 0;
	if (*digit < '0' || *digit > '9')
		return false;
	for (; *digit >= '0' && *digit <= '9'; digit++)
		number = number * 10 + (uint64_t)(*digit - '0');
	*at = digit;
	*value = (double)number;
	return true;
}

/* Copies what is before `end` in this line, without leading blanks, and moves *at behind `end`. False: there
 * is no `end`, or it does not fit. */
static bool take_name(const char **at, char end, char *name, size_t size)
{
	const char *from = skip_blanks(*at);
	const char both[] = {end, '\n', '\0'};
	const size_t length = strcspn(from, both);
	if (from[length] != end || !length || length >= size)
		return false;
	memcpy(name, from, length);
	name[length] = '\0';
	*at = from + length + 1;
	return true;
}

static void sample_cpu(struct proc_metrics *m)
{
	static const char *const names[] = {
	    "host.cpu.user",   NULL,	       "host.cpu.system",  "host.cpu.idle",
	    "host.cpu.iowait", "host.cpu.irq", "host.cpu.softirq", "host.cpu.steal"};
	enum { STATES = sizeof names / sizeof *names };
	struct source *from = &m->sources[STAT];
	const char *at = read_source(m, STAT);
	double v[STATES], total = 0;
	if (!at || strncmp(at, "cpu ", 4) != 0)
		return;
	at += 4;
	for (int i = 0; i < STATES; i++) {
		if (!take_number(&at, &v[i]))
			return;
		total += v[i];
	}
	v[0] += v[1]; /* nice counts as user time */
	const double passed = total - m->cpu_total;
	m->cpu_total = total;
	for (int i = 0; i < STATES; i++) {
		struct series *s =
		    names[i] ? series_of(m, &from->places, names[i], "percent", NULL, NULL, NULL, NULL)
			     : NULL;
		if (!s)
			continue;
		if (s->parsed_ns && passed > 0)
			write_value(m, s, 100 * (v[i] - s->counter) / passed, read_before(from, s));
		s->counter = v[i];
		s->parsed_ns = m->now_ns;
	}
}

/* A line "Name: 123 kB" or "name 123" of a file. */
struct line_wanted {
	const char *key, *series, *unit;
	double scale; /* of a level */
	bool rate;
};

/* Writes the number of a line if it is wanted. */
static void sample_line(struct proc_metrics *m, struct source *from, const char *line,
			const struct line_wanted *wanted, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct line_wanted *w = &wanted[i];
		const size_t length = strlen(w->key);
		double value;
		if (strncmp(line, w->key, length) != 0 || (line[length] != ':' && line[length] != ' '))
			continue;
		const char *at = line + length + 1;
		if (!take_number(&at, &value))
			return;
		if (w->rate)
			rate(m, from, w->series, w->unit, value, 1, NULL, NULL, NULL, NULL);
		else
			level(m, from, w->series, w->unit, value * w->scale, NULL, NULL);
		return;
	}
}

static void sample_lines(struct proc_metrics *m, enum file which, const struct line_wanted *wanted,
			 size_t count)
{
	for (const char *line = read_source(m, which); line; line = next_line(line))
		sample_line(m, &m->sources[which], line, wanted, count);
}

static void sample_memory(struct proc_metrics *m)
{
	static const struct line_wanted meminfo[] = {
	    {"MemAvailable", "host.memory.available", "bytes", 1024, false},
	    {"MemFree", "host.memory.free", "bytes", 1024, false},
	    {"Cached", "host.memory.cached", "bytes", 1024, false},
	    {"Dirty", "host.memory.dirty", "bytes", 1024, false},
	    {"Writeback", "host.memory.writeback", "bytes", 1024, false},
	    {"SwapFree", "host.memory.swap_free", "bytes", 1024, false}};
	static const struct line_wanted vmstat[] = {{"pgfault", "host.page_faults", "1/s", 1, true},
						    {"pgmajfault", "host.major_faults", "1/s", 1, true},
						    {"pswpin", "host.swap_in", "1/s", 1, true},
						    {"pswpout", "host.swap_out", "1/s", 1, true},
						    {"oom_kill", "host.oom_kills", "", 1, false},
						    {"drop_pagecache", "host.page_cache_drops", "", 1, false},
						    {"drop_slab", "host.slab_drops", "", 1, false}};
	sample_lines(m, MEMINFO, meminfo, sizeof meminfo / sizeof *meminfo);
	sample_lines(m, VMSTAT, vmstat, sizeof vmstat / sizeof *vmstat);
}

static void sample_disks(struct proc_metrics *m)
{
	struct source *from = &m->sources[DISKSTATS];
	for (const char *line = read_source(m, DISKSTATS); line; line = next_line(line)) {
		char name[32];
		double reads, writes;
		const char *at = skip_words(line, 2);
		if (!take_name(&at, ' ', name, sizeof name))
			continue;
		at = skip_words(at, 2);
		if (!take_number(&at, &reads))
			continue;
		at = skip_words(at, 3);
		if (!take_number(&at, &writes) || (reads == 0 && writes == 0))
			continue;
		rate(m, from, "host.disk.read", "bytes/s", reads, 512, "device", name, NULL, NULL);
		rate(m, from, "host.disk.write", "bytes/s", writes, 512, "device", name, NULL, NULL);
	}
}

/* Reads a table of vectors per CPU. Its first line names the CPUs. */
static void sample_softirqs(struct proc_metrics *m)
{
	struct source *from = &m->sources[SOFTIRQS];
	const char *line = read_source(m, SOFTIRQS);
	while (line && (line = next_line(line))) {
		char vector[16], cpu_name[16];
		const char *at = line;
		double n;
		if (!take_name(&at, ':', vector, sizeof vector))
			continue;
		for (int cpu = 0; take_number(&at, &n); cpu++) {
			snprintf(cpu_name, sizeof cpu_name, "%d", cpu);
			rate(m, from, "host.softirq", "1/s", n, 1, "cpu", cpu_name, "vector", vector);
		}
	}
}

static void sample_network(struct proc_metrics *m)
{
	struct source *from = &m->sources[NETDEV];
	for (const char *line = read_source(m, NETDEV); line; line = next_line(line)) {
		char name[32];
		const char *at = line;
		double receive, transmit;
		if (!take_name(&at, ':', name, sizeof name) || !take_number(&at, &receive))
			continue;
		at = skip_words(at, 7);
		if (!take_number(&at, &transmit))
			continue;
		rate(m, from, "host.network.receive", "bytes/s", receive, 1, "interface", name, NULL, NULL);
		rate(m, from, "host.network.transmit", "bytes/s", transmit, 1, "interface", name, NULL, NULL);
	}
}

static void sample_target(struct proc_metrics *m, pid_t pid)
{
	char path[48], name[16];
	snprintf(path, sizeof path, "%d/stat", pid);
	text_read_at(&m->text, m->proc, path, TEXT_MAX);
	if (!m->text.length)
		return;
	const char *at = strrchr(m->text.bytes, ')'); /* comm may contain any characters */
	double minor, major, user, system, rss;
	if (!at)
		return;
	at = skip_words(at + 1, 7);
	if (!take_number(&at, &minor))
		return;
	at = skip_words(at, 1);
	if (!take_number(&at, &major))
		return;
	at = skip_words(at, 1);
	if (!take_number(&at, &user) || !take_number(&at, &system))
		return;
	at = skip_words(at, 8);
	if (!take_number(&at, &rss))
		return;
	struct source *from = &m->targets;
	snprintf(name, sizeof name, "%d", pid);
	rate(m, from, "target.cpu", "percent", user + system, 100.0 / (double)sysconf(_SC_CLK_TCK), "pid",
	     name, NULL, NULL);
	rate(m, from, "target.minor_faults", "1/s", minor, 1, "pid", name, NULL, NULL);
	rate(m, from, "target.major_faults", "1/s", major, 1, "pid", name, NULL, NULL);
	level(m, from, "target.rss", "bytes", rss * (double)sysconf(_SC_PAGESIZE), "pid", name);
}

/* The kernel adds up the times of all threads of a process, a millisecond for 4,000, and blocks interrupts
 * meanwhile. */
static void sample_targets(struct proc_metrics *m, const pid_t *pids, size_t count)
{
	if (!look_begins(&m->targets_look, m->now_ns))
		return;
	m->targets.places.next = 0;
	for (size_t i = 0; i < count; i++) {
		sample_target(m, pids[i]);
		cpu_offer();
	}
	look_ends(&m->targets_look, 0);
}

struct proc_metrics *proc_metrics_open(struct ft_writer *w, const char *proc)
{
	struct proc_metrics *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	m->writer = w;
	m->now_ns = ft_now_ns();
	m->proc = open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < FILES_READ; i++)
		m->sources[i].fd = openat(m->proc, files[i], O_RDONLY | O_CLOEXEC);
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
	m->segment++;
	for (int i = 0; i < FILES_READ; i++)
		m->sources[i].parsed_again = false;
	HASH_ITER(hh, m->by_key, s, next)
	{
		if (s->used) {
			s->used = false;
			s->written_ns = 0;
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
	for (int i = 0; i < FILES_READ; i++) {
		if (m->sources[i].fd >= 0)
			close(m->sources[i].fd);
		free(m->sources[i].text.bytes);
		places_free(&m->sources[i].places);
	}
	places_free(&m->targets.places);
	look_close(&m->targets_look);
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
	struct source values;
	struct text text;
	size_t processes; /* when cgroups were last looked up */
	struct look find_look, read_look;
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
			level(c->metrics, &c->values, f->counters[k].series, f->counters[k].unit, value,
			      "cgroup", g->cgroup);
		}
	}
}

void cgroup_memory_look(struct cgroup_memory *c, const pid_t *pids, size_t count, uint64_t now_ns)
{
	if (!c)
		return;
	if (count != c->processes)
		look_soon(&c->find_look);
	if (look_begins(&c->find_look, now_ns)) {
		find_groups(c, pids, count);
		c->processes = count;
		look_ends(&c->find_look, FIND_EVERY_NS);
	}
	if (!look_begins(&c->read_look, now_ns))
		return;
	c->values.places.next = 0;
	for (size_t i = 0; i < c->count; i++) {
		cpu_offer_in_loop();
		read_group(c, &c->all[i]);
	}
	look_ends(&c->read_look, 0);
}

void cgroup_memory_close(struct cgroup_memory *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->count; i++)
		close_files(&c->all[i]);
	look_close(&c->find_look);
	look_close(&c->read_look);
	places_free(&c->values.places);
	free(c->all);
	free(c->text.bytes);
	free(c);
}

/* CPU quotas of targets, from the cgroup file system of version 1 or 2. The kernel programs themselves detect
 * that a thread was throttled and for how long. This file finds the cause (which cgroup, its quota) and
 * whether throttling needs to be checked at all: a host without quotas pays nothing. A quota of any cgroup on
 * the path to the root applies. Reading the cgroup of every thread is expensive, and threads rarely change
 * it: a new thread is in the cgroup of its creator. So the cgroups of threads are read less often than
 * quotas where that takes long. */

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
	struct source values;
	struct quota *all;
	size_t count, room;
	struct look look; /* at quotas */
	struct thread_cgroup *of_threads;
	size_t thread_count, thread_room;
	struct look threads_look; /* at the cgroups of threads */
	size_t processes;	  /* when they were last read */
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
		level(q->metrics, &q->values, "cgroup.throttles", "", times, "cgroup", cgroup);
	if (cgroup_number(text, q->cgroups.v2 ? "throttled_usec" : "throttled_time", &ns))
		level(q->metrics, &q->values, "cgroup.throttled", "ns", q->cgroups.v2 ? ns * 1000 : ns,
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

static void find_all_thread_cgroups(struct quotas *q, const pid_t *pids, size_t count)
{
	q->thread_count = 0;
	for (size_t i = 0; i < count; i++)
		find_thread_cgroups(q, pids[i]);
	q->processes = count;
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
	if (count != q->processes) {
		look_soon(&q->threads_look);
		look_soon(&q->look);
	}
	if (look_begins(&q->threads_look, now_ns)) {
		find_all_thread_cgroups(q, pids, count);
		look_ends(&q->threads_look, 0);
	}
	if (!look_begins(&q->look, now_ns))
		return q->count > 0;
	q->values.places.next = 0;
	for (size_t i = 0; i < q->count; i++)
		q->all[i].seen = false;
	look_at_all(q, pids, count);
	forget_unseen(q);
	look_ends(&q->look, 0);
	return q->count > 0;
}

void quotas_begin_segment(struct quotas *q)
{
	if (!q)
		return;
	look_soon(&q->look);
	for (size_t i = 0; i < q->count; i++)
		q->all[i].quota_us = -1; /* so that it differs from the value found */
}

void quotas_close(struct quotas *q)
{
	if (!q)
		return;
	look_close(&q->look);
	look_close(&q->threads_look);
	places_free(&q->values.places);
	free(q->all);
	free(q->of_threads);
	free(q);
}

/* SPDX-License-Identifier: MIT */
/* Finds the processes to trace, all from /proc. Every process is checked, because there is no index of names
 * or sockets, and it happens only once. */
#include "loader/targets.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/system.h"
#include "recording/json_block.h"

bool targets_has(const struct targets *t, pid_t pid)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->pids[i] == pid)
			return true;
	return false;
}

int targets_add_pid(struct targets *t, pid_t pid)
{
	char comm[32];
	if (pid <= 0 || read_proc(pid, "comm", comm, sizeof comm) < 0)
		return -ESRCH;
	if (targets_has(t, pid))
		return 1;
	if (t->count == TARGETS_MAX)
		return -E2BIG;
	t->pids[t->count++] = pid;
	return 1;
}

int targets_add_pids(struct targets *t, const char *list, pid_t *which)
{
	int found = 0;
	for (const char *at = list;;) {
		char *end;
		long pid = strtol(at, &end, 10);
		if (end == at || pid <= 0 || pid > 1 << 22 || (*end && *end != ','))
			return -EINVAL;
		*which = (pid_t)pid;
		int n = targets_add_pid(t, *which);
		if (n < 0)
			return n;
		found += n;
		if (!*end)
			return found;
		at = end + 1;
	}
}

int port_number(const char *text)
{
	char *end;
	long port = strtol(text, &end, 10);
	return *end || end == text || port < 1 || port > 65535 ? -EINVAL : (int)port;
}

/* Calls `wants` for every process and adds those for which it returns true. */
static int add_matching(struct targets *t, bool (*wants)(pid_t pid, const void *what), const void *what)
{
	DIR *dir = opendir("/proc");
	if (!dir)
		return -errno;
	int found = 0;
	for (struct dirent *e; found >= 0 && (e = readdir(dir));) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		pid_t pid = (pid_t)atoi(e->d_name);
		cpu_offer_in_loop();
		if (!wants(pid, what))
			continue;
		int n = targets_add_pid(t, pid);
		if (n == -E2BIG)
			found = n;
		else if (n > 0)
			found += n;
	}
	closedir(dir);
	return found;
}

static bool has_socket(pid_t pid, const void *what)
{
	return holds_socket(pid, what);
}

/* `found` is the result of searching the sockets. */
static int add_owners(struct targets *t, const struct inodes *inodes, int found)
{
	if (found < 0)
		return found;
	if (!inodes->count)
		return -ENOENT;
	int n = add_matching(t, has_socket, inodes);
	return n ? n : -EACCES;
}

int targets_add_port(struct targets *t, int port)
{
	struct inodes inodes = {.count = 0};
	int found = listeners_on_port(&inodes, port);
	return add_owners(t, &inodes, found);
}

int targets_add_unix(struct targets *t, const char *path)
{
	struct inodes inodes = {.count = 0};
	int found = listeners_on_path(&inodes, path);
	return add_owners(t, &inodes, found);
}

static bool has_name(pid_t pid, const void *what)
{
	const char *name = what;
	char text[PATH_MAX], path[64];
	if (read_proc(pid, "comm", text, sizeof text) > 0 && strcmp(text, name) == 0)
		return true;
	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	ssize_t n = readlink(path, text, sizeof text - 1);
	if (n <= 0)
		return false;
	text[n] = 0;
	const char *slash = strrchr(text, '/');
	return strcmp(slash ? slash + 1 : text, name) == 0;
}

int targets_add_name(struct targets *t, const char *name)
{
	int n = add_matching(t, has_name, name);
	return n ? n : -ENOENT;
}

/* Tracing the recorder would record the recording itself. Kernel threads, which fill the root cgroups, have
 * no program. */
static bool is_traceable(pid_t pid)
{
	char path[64], text[8];
	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	return pid != getpid() && readlink(path, text, sizeof text) > 0;
}

/* The processes in one cgroup's directory. */
static int add_members(struct targets *t, const char *directory)
{
	char path[PATH_MAX];
	int found = 0, pid, n;
	if ((size_t)snprintf(path, sizeof path, "%s/cgroup.procs", directory) >= sizeof path)
		return -ENAMETOOLONG;
	FILE *f = fopen(path, "re");
	if (!f)
		return -errno;
	while (found >= 0 && fscanf(f, "%d", &pid) == 1) {
		if (!is_traceable(pid))
			continue;
		n = targets_add_pid(t, pid);
		found = n == -E2BIG ? n : n > 0 ? found + n : found;
	}
	fclose(f);
	return found;
}

/* And in its child cgroups. A cgroup that is deleted meanwhile has no processes. */
static int add_tree(struct targets *t, const char *directory, int depth)
{
	enum { DEEPEST = 64 };
	int found = add_members(t, directory);
	DIR *dir = found >= 0 && depth < DEEPEST ? opendir(directory) : NULL;
	for (struct dirent *e; dir && found >= 0 && (e = readdir(dir));) {
		char path[PATH_MAX];
		if (e->d_type != DT_DIR || e->d_name[0] == '.' ||
		    (size_t)snprintf(path, sizeof path, "%s/%s", directory, e->d_name) >= sizeof path)
			continue;
		int n = add_tree(t, path, depth + 1);
		found = n == -E2BIG ? n : n > 0 ? found + n : found;
	}
	if (dir)
		closedir(dir);
	return found;
}

static bool is_cgroup(const char *directory)
{
	char path[PATH_MAX];
	return (size_t)snprintf(path, sizeof path, "%s/cgroup.procs", directory) < sizeof path &&
	       access(path, R_OK) == 0;
}

int targets_add_cgroup(struct targets *t, const char *path)
{
	static const char mount[] = "/sys/fs/cgroup";
	char directory[PATH_MAX];
	if (*path == '/' && is_cgroup(path)) {
		int n = add_tree(t, path, 0);
		return n ? n : -ENOENT;
	}
	while (*path == '/')
		path++;
	int found = 0;
	snprintf(directory, sizeof directory, "%s/%s", mount, path);
	if (is_cgroup(directory))
		found = add_tree(t, directory, 0);
	DIR *dir = opendir(mount);
	for (struct dirent *e; dir && found >= 0 && (e = readdir(dir));) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(directory, sizeof directory, "%s/%s/%s", mount, e->d_name, path);
		int n = is_cgroup(directory) ? add_tree(t, directory, 0) : 0;
		found = n < 0 ? n : found + n;
	}
	if (dir)
		closedir(dir);
	return found ? found : -ENOENT;
}

static bool is_in_unit(pid_t pid, const void *what)
{
	char path[CGROUP_BYTES], name[CONTAINER_BYTES];
	return cgroup_best("", pid, path) && cgroup_unit(path, name, sizeof name) &&
	       strcmp(name, what) == 0 && is_traceable(pid);
}

int targets_add_unit(struct targets *t, const char *unit)
{
	char name[CONTAINER_BYTES];
	const char *dot = strrchr(unit, '.');
	bool whole = dot && (strcmp(dot, ".service") == 0 || strcmp(dot, ".scope") == 0);
	if (!*unit ||
	    (size_t)snprintf(name, sizeof name, "%s%s", unit, whole ? "" : ".service") >= sizeof name)
		return -ENOENT;
	int n = add_matching(t, is_in_unit, name);
	return n ? n : -ENOENT;
}

struct container_match {
	char id[CONTAINER_BYTES]; /* of the first */
	bool several;
};

/* The container to find, by its full id or the beginning of it. */
struct container {
	const char *id;
	bool whole;
	struct container_match *found;
};

static bool is_in_container(pid_t pid, const void *what)
{
	const struct container *c = what;
	char path[CGROUP_BYTES], id[CONTAINER_BYTES];
	if (!cgroup_best("", pid, path) || !cgroup_container(path, id) ||
	    (c->whole ? strcmp(id, c->id) : strncmp(id, c->id, strlen(c->id))) || !is_traceable(pid))
		return false;
	if (c->found->id[0] && strcmp(c->found->id, id) != 0)
		c->found->several = true;
	snprintf(c->found->id, sizeof c->found->id, "%s", id);
	return true;
}

int targets_add_container(struct targets *t, const char *which)
{
	struct container_match found = {.several = false};
	char id[CONTAINER_BYTES];
	struct container c = {.id = container_id("", which, id) ? id : which, .whole = true, .found = &found};
	size_t before = t->count;
	if (!*which)
		return -ENOENT;
	int n = add_matching(t, is_in_container, &c);
	if (!n) {
		c.whole = false;
		n = add_matching(t, is_in_container, &c);
	}
	if (found.several) {
		t->count = before;
		return -ENOTUNIQ;
	}
	return n ? n : -ENOENT;
}

/* Finding a listening process is expensive: the kernel's tables contain sockets without processes, so all
 * descriptors of all processes are searched. The tables alone show whether that has to be repeated. */

bool selectors_add(struct selectors *s, enum selector_kind kind, const char *text, int port)
{
	if (s->count == SELECTORS_MAX)
		return false;
	s->all[s->count++] = (struct selector){.kind = kind, .text = text, .port = port};
	return true;
}

int selector_find(const struct selector *s, struct targets *found)
{
	switch (s->kind) {
	case SELECT_PORT:
		return targets_add_port(found, s->port);
	case SELECT_UNIX:
		return targets_add_unix(found, s->text);
	case SELECT_NAME:
		return targets_add_name(found, s->text);
	case SELECT_CGROUP:
		return targets_add_cgroup(found, s->text);
	case SELECT_CONTAINER:
		return targets_add_container(found, s->text);
	case SELECT_UNIT:
		return targets_add_unit(found, s->text);
	}
	return -EINVAL;
}

int selector_find_more(struct selector *s, struct targets *found)
{
	struct inodes now = {.count = 0};
	if (s->kind != SELECT_PORT && s->kind != SELECT_UNIX)
		return selector_find(s, found);
	int n = s->kind == SELECT_PORT ? listeners_on_port(&now, s->port) : listeners_on_path(&now, s->text);
	if (n < 0 || (now.count == s->listening.count &&
		      memcmp(now.inode, s->listening.inode, now.count * sizeof *now.inode) == 0))
		return n < 0 ? n : 0;
	n = selector_find(s, found);
	s->listening = n > 0 ? now : (struct inodes){.count = 0};
	return n;
}

bool selectors_look_at_descriptors(const struct selectors *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->all[i].kind == SELECT_PORT || s->all[i].kind == SELECT_UNIX)
			return true;
	return false;
}

void selectors_forget(struct selectors *s)
{
	for (size_t i = 0; i < s->count; i++)
		s->all[i].listening.count = 0;
}

/* Descriptions are kept, and renewed one at a time: where a process listens and connects to is found in the
 * tables of all sockets of its network namespace, which takes milliseconds with thousands of connections, and
 * seconds for hundreds of processes. */

#define RENEW_NS 60000000000ull
#define YOUNG_NS 15000000000ull
#define RENEW_YOUNG_NS 3000000000ull

struct description {
	pid_t pid;
	uint64_t added_ns, renewed_ns;
	json_t *text;
	char cmdline[DESCRIPTION_CMDLINE_BYTES];
};

struct descriptions {
	struct description all[TARGETS_MAX];
	size_t count;
	struct look look;
};

static json_t *describe(pid_t pid, const char *cmdline)
{
	char comm[32], cgroup[CGROUP_BYTES], name[CGROUP_NAME_BYTES];
	read_proc(pid, "comm", comm, sizeof comm);
	json_t *process =
	    json_pack("{s:i, s:o, s:o, s:o, s:b}", "pid", (int)pid, "comm", json_text(comm, strlen(comm)),
		      "cmdline", json_text(cmdline, strlen(cmdline)), "listens", listen_addresses(pid),
		      "io_uring", has_io_uring(pid));
	json_object_set_new(process, "addresses", addresses_of(pid));
	peers_put(process, pid);
	if (cgroup_best("", pid, cgroup)) {
		cgroup_name("", cgroup, name);
		json_put_text(process, "cgroup", cgroup);
		json_put_text(process, "cgroup_of", name);
	}
	return process;
}

struct descriptions *descriptions_open(void)
{
	return calloc(1, sizeof(struct descriptions));
}

static struct description *find(struct descriptions *d, pid_t pid)
{
	for (size_t i = 0; i < d->count; i++)
		if (d->all[i].pid == pid)
			return &d->all[i];
	return NULL;
}

static json_t *renew(struct description *one, uint64_t now_ns)
{
	json_decref(one->text);
	one->text = describe(one->pid, one->cmdline);
	one->renewed_ns = now_ns;
	return one->text;
}

json_t *descriptions_add(struct descriptions *d, pid_t pid, const char *cmdline, uint64_t now_ns)
{
	struct description *one = d ? find(d, pid) : NULL;
	if (d && !one && d->count < TARGETS_MAX) {
		one = &d->all[d->count++];
		*one = (struct description){.pid = pid, .added_ns = now_ns};
		snprintf(one->cmdline, sizeof one->cmdline, "%s", cmdline);
	}
	return one ? renew(one, now_ns) : NULL;
}

void descriptions_forget(struct descriptions *d, pid_t pid)
{
	struct description *one = d ? find(d, pid) : NULL;
	if (!one)
		return;
	json_decref(one->text);
	*one = d->all[--d->count];
}

json_t *descriptions_all(const struct descriptions *d)
{
	json_t *all = json_array();
	for (size_t i = 0; d && i < d->count; i++)
		json_array_append(all, d->all[i].text);
	return all;
}

static bool is_young(const struct description *one, uint64_t now_ns)
{
	return now_ns - one->added_ns < YOUNG_NS;
}

/* The one that it is time for: a young one first, then the one looked up longest ago. */
static struct description *next(struct descriptions *d, uint64_t now_ns)
{
	struct description *best = NULL;
	for (size_t i = 0; i < d->count; i++) {
		struct description *one = &d->all[i];
		const bool young = is_young(one, now_ns), best_young = best && is_young(best, now_ns);
		if (now_ns - one->renewed_ns < (young ? RENEW_YOUNG_NS : RENEW_NS))
			continue;
		if (!best || (young == best_young ? one->renewed_ns < best->renewed_ns : young))
			best = one;
	}
	return best;
}

json_t *descriptions_tick(struct descriptions *d, uint64_t now_ns)
{
	struct description *one = d ? next(d, now_ns) : NULL;
	if (!one || !look_begins(&d->look, now_ns))
		return NULL;
	renew(one, now_ns);
	look_ends(&d->look, 0);
	return one->text;
}

void descriptions_close(struct descriptions *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->count; i++)
		json_decref(d->all[i].text);
	look_close(&d->look);
	free(d);
}

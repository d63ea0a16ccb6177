/* SPDX-License-Identifier: MIT */
/* Finding the processes to trace, all from /proc: every process is asked whether it is one, because there is
 * no index of names or sockets, and it happens once. */
#include "targets.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "listeners.h"

int read_proc(pid_t pid, const char *file, char *text, size_t size)
{
	char path[96];
	snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
	text[0] = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, text, size - 1);
	close(fd);
	if (n < 0)
		return -errno;
	for (ssize_t i = 0; i < n; i++)
		if (text[i] == 0)
			text[i] = ' ';
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		n--;
	text[n] = 0;
	return (int)n;
}

int targets_add_pid(struct targets *t, pid_t pid)
{
	char comm[32];
	if (pid <= 0 || read_proc(pid, "comm", comm, sizeof comm) < 0)
		return -ESRCH;
	for (size_t i = 0; i < t->count; i++)
		if (t->pids[i] == pid)
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

/* Calls `wants` for every process and adds those it wants. */
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

/* `found` is how the search for the sockets went. */
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

/* SPDX-License-Identifier: MIT */
/* /proc/PID/map_files leads to the very file that is mapped: also to one that was deleted or replaced on
 * disk, as by an upgrade, and never to another that somebody put in its place. It wants
 * CAP_CHECKPOINT_RESTORE over the host. Where that isn't to be had (in a container), the path is walked from
 * the process' own root, a component at a time and following no link: paths in maps have none.
 *
 * Either way a file is found without being opened (O_PATH), looked at, and opened only when it is a regular
 * one. A FIFO would keep us waiting, a device do whatever devices do when opened, and a file that a FUSE
 * server serves is the server's to hold us up by. */
#include "loader/samples/mapped_open.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The mount that a descriptor is on; -1 when the kernel doesn't say. */
static int mount_of(int fd)
{
	char path[48], line[128];
	int id = -1;
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	FILE *f = fopen(path, "re");
	while (f && id < 0 && fgets(line, sizeof line, f))
		if (sscanf(line, "mnt_id: %d", &id) != 1)
			id = -1;
	if (f)
		fclose(f);
	return id;
}

/* Whether a mount of the process' is served by a process. */
static bool is_fuse(pid_t pid, int mount)
{
	char path[48], *line = NULL;
	size_t room = 0;
	bool fuse = false;
	snprintf(path, sizeof path, "/proc/%d/mountinfo", pid);
	FILE *f = fopen(path, "re");
	while (f && getline(&line, &room, f) > 0) {
		const char *type = strstr(line, " - ");
		if (atoi(line) != mount || !type)
			continue;
		fuse = strncmp(type + 3, "fuse", 4) == 0;
		break;
	}
	if (f)
		fclose(f);
	free(line);
	return fuse;
}

/* A process' files lie on one or two mounts: what was found of the last one is kept. */
static bool may_hold_us_up(pid_t pid, int fd)
{
	static pid_t last_pid;
	static int last_mount = -1;
	static bool last;
	int mount = mount_of(fd);
	if (pid != last_pid || mount != last_mount) {
		last = is_fuse(pid, mount);
		last_pid = pid;
		last_mount = mount;
	}
	return last;
}

/* The next component of a path below `dir`, which is closed. */
static int descend(pid_t pid, int dir, const char *name, size_t length)
{
	char component[NAME_MAX + 1];
	int fd;
	if (length > NAME_MAX || (length == 2 && memcmp(name, "..", 2) == 0)) {
		fd = -ENOENT;
	} else if (may_hold_us_up(pid, dir)) {
		fd = -ENOTSUP;
	} else {
		memcpy(component, name, length);
		component[length] = 0;
		fd = openat(dir, component, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	}
	close(dir);
	return fd;
}

/* Finds what lies at the path within the process' root. */
static int walk(pid_t pid, const char *path)
{
	char root[48];
	snprintf(root, sizeof root, "/proc/%d/root", pid);
	int at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	at = at < 0 ? -errno : at;
	while (at >= 0 && *(path += strspn(path, "/"))) {
		size_t length = strcspn(path, "/");
		at = descend(pid, at, path, length);
		path += length;
	}
	return at;
}

/* Opens for reading what was found. */
static int reopen(pid_t pid, int found, uint64_t inode)
{
	struct stat st;
	char self[48];
	if (may_hold_us_up(pid, found))
		return -ENOTSUP;
	if (fstat(found, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOTSUP;
	if (inode && st.st_ino != inode)
		return -ESTALE;
	snprintf(self, sizeof self, "/proc/self/fd/%d", found);
	int fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int mapped_open(pid_t pid, const struct mapped_file *file)
{
	char path[96];
	snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, file->code_start,
		 file->code_end);
	uint64_t inode = 0;
	int found = open(path, O_PATH | O_CLOEXEC), fd;
	if (found < 0 && (errno == EPERM || errno == EACCES)) {
		inode = file->inode;
		found = file->path[0] == '/' ? walk(pid, file->path) : -ENOENT;
	} else if (found < 0) {
		found = -errno;
	}
	if (found < 0)
		return found;
	fd = reopen(pid, found, inode);
	close(found);
	return fd;
}

/* SPDX-License-Identifier: MIT */
/* /proc/PID/map_files leads to exactly the file that is mapped, even if it was deleted or replaced on disk by
 * an upgrade, and never to a file that another user put in its place. It requires CAP_CHECKPOINT_RESTORE in
 * the host's user namespace. Without it (in a container), the path is walked from the process' own root, one
 * component at a time without following links, because paths in maps have none. Either way, the file is found
 * without opening it (O_PATH), checked, and opened only if it is a regular file. A FIFO would block, opening
 * a device could have side effects, and a FUSE server could delay the recorder. */
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

/* The mount of a descriptor, or -1 if the kernel doesn't report it. */
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

/* Whether a mount of the process is served by another process (FUSE). -ENOENT: the process does not see it.
 */
static int is_fuse(pid_t pid, int mount)
{
	char path[48], *line = NULL;
	size_t room = 0;
	int fuse = -ENOENT;
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

/* A file may be on a mount that the process does not see: of another namespace, or unmounted while it was in
 * use. A mount that is not found may be of any kind. The files of a process are on one or two mounts: the
 * last result is cached. */
static bool may_hold_us_up(pid_t pid, int fd)
{
	static pid_t last_pid;
	static int last_mount = -1;
	static bool last;
	int mount = mount_of(fd);
	if (pid != last_pid || mount != last_mount) {
		int fuse = is_fuse(pid, mount);
		fuse = fuse < 0 ? is_fuse(getpid(), mount) : fuse;
		last = fuse != 0;
		last_pid = pid;
		last_mount = mount;
	}
	return last;
}

/* Opens the next component of a path below `dir`, which is closed. */
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

/* Finds the file at the path within the process' root. */
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

/* Opens the file that was found for reading. */
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

/* SPDX-License-Identifier: MIT */
/* /proc/PID/map_files leads to exactly the file that is mapped, even if it was deleted or replaced on disk by
 * an upgrade, and never to a file that another user put in its place. It requires CAP_CHECKPOINT_RESTORE in
 * the host's user namespace. Without it (in a container), the path is walked from the process' own root, one
 * component at a time without following links, because paths in maps have none. Either way, the file is found
 * without opening it (O_PATH), checked, and opened only if it is a regular file. A FIFO would block, opening
 * a device could have side effects, and a FUSE server could delay us. Each of these calls may still block for
 * good: an overlay's lower layer may be FUSE, and a server of NFS may have stopped. So only a process that
 * may be abandoned makes them (files_helper.c). */
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

#include "loader/system/text.h"

enum { MOUNTINFO_MAX = 64 << 20 };

struct mounts {
	size_t count;
	struct mount {
		int id;
		bool served; /* by another process (FUSE) */
	} all[];
};

static int by_id(const void *a, const void *b)
{
	const struct mount *x = a, *y = b;
	return (x->id > y->id) - (x->id < y->id);
}

struct mounts *mounts_read(pid_t pid)
{
	char path[48];
	struct text text = {NULL};
	size_t lines = 0;
	snprintf(path, sizeof path, "/proc/%d/mountinfo", pid);
	const bool whole = text_read_at(&text, AT_FDCWD, path, MOUNTINFO_MAX);
	for (const char *at = text.bytes; whole && at && (at = strchr(at, '\n')); at++)
		lines++;
	struct mounts *m = malloc(sizeof *m + lines * sizeof *m->all);
	if (m)
		m->count = 0;
	for (char *line = text.bytes, *end; m && m->count < lines; line = end + 1) {
		end = strchr(line, '\n');
		*end = 0;
		const char *type = strstr(line, " - ");
		if (type)
			m->all[m->count++] = (struct mount){atoi(line), strncmp(type + 3, "fuse", 4) == 0};
		else
			lines--;
	}
	if (m)
		qsort(m->all, m->count, sizeof *m->all, by_id);
	free(text.bytes);
	return m;
}

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

/* A file may be on a mount that the process does not see: of another namespace, or unmounted while it was in
 * use. A mount that neither list has may be of any kind. */
static bool may_hold_us_up(const struct mounts *const mounts[MOUNTS], int fd)
{
	const struct mount wanted = {.id = mount_of(fd)};
	for (int i = 0; i < MOUNTS; i++) {
		const struct mount *found =
		    mounts[i] ? bsearch(&wanted, mounts[i]->all, mounts[i]->count, sizeof wanted, by_id)
			      : NULL;
		if (found)
			return found->served;
	}
	return true;
}

/* Opens the next component of a path below `dir`, which is closed. */
static int descend(const struct mounts *const mounts[MOUNTS], int dir, const char *name, size_t length)
{
	char component[NAME_MAX + 1];
	int fd;
	if (length > NAME_MAX || (length == 2 && memcmp(name, "..", 2) == 0)) {
		fd = -ENOENT;
	} else if (may_hold_us_up(mounts, dir)) {
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
static int walk(const struct mounts *const mounts[MOUNTS], pid_t pid, const char *path)
{
	char root[48];
	snprintf(root, sizeof root, "/proc/%d/root", pid);
	int at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	at = at < 0 ? -errno : at;
	while (at >= 0 && *(path += strspn(path, "/"))) {
		size_t length = strcspn(path, "/");
		at = descend(mounts, at, path, length);
		path += length;
	}
	return at;
}

/* Opens the file that was found for reading. */
static int reopen(const struct mounts *const mounts[MOUNTS], int found, uint64_t inode)
{
	struct stat st;
	char self[48];
	if (may_hold_us_up(mounts, found))
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

int mapped_open(const struct mounts *const mounts[MOUNTS], pid_t pid, const struct mapped_file *file)
{
	char path[96];
	snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, file->code_start,
		 file->code_end);
	uint64_t inode = 0;
	int found = open(path, O_PATH | O_CLOEXEC), fd;
	if (found < 0 && (errno == EPERM || errno == EACCES)) {
		inode = file->inode;
		found = file->path[0] == '/' ? walk(mounts, pid, file->path) : -ENOENT;
	} else if (found < 0) {
		found = -errno;
	}
	if (found < 0)
		return found;
	fd = reopen(mounts, found, inode);
	close(found);
	return fd;
}

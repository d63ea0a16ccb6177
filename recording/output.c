/* SPDX-License-Identifier: MIT */
/* Opens the output file of a recording. The recorder runs as root, and other users may be able to write to
 * the directory. So links are not followed, a file is truncated only if it is known to be the caller's
 * recording, and new files are readable by their owner only: recordings contain command lines, addresses and
 * names. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "recording.h"

enum { LOCK_TRIES = 1000 };

/* Reads the number that sudo left in the environment. */
static bool number_of(const char *variable, unsigned long *number)
{
	const char *text = getenv(variable);
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoul(text, &end, 10);
	return !errno && !*end && *number < UINT32_MAX;
}

/* The user who called sudo; false: none. Only root can give files away, so another user gains nothing by
 * setting the variables. */
static bool caller(uid_t *uid, gid_t *gid)
{
	unsigned long user, group;

	if (geteuid() != 0 || !number_of("SUDO_UID", &user) || !number_of("SUDO_GID", &group))
		return false;
	*uid = (uid_t)user;
	*gid = (gid_t)group;
	return true;
}

void ft_give_to_caller(int fd)
{
	uid_t uid;
	gid_t gid;

	/* Where it fails, as on a file system without owners, the file stays root's: nothing is lost. */
	if (caller(&uid, &gid) && fchown(fd, uid, gid)) {
	}
}

static bool is_mine(const struct stat *st)
{
	uid_t uid;
	gid_t gid;

	return st->st_uid == geteuid() || (caller(&uid, &gid) && st->st_uid == uid);
}

/* Opens an existing file after checking the file itself, because its name may refer to another one a moment
 * later. A device or a FIFO isn't opened at all. */
static int open_existing(const char *path)
{
	struct stat st;
	char self[48];
	int fd, found = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (found < 0)
		return -errno;
	if (fstat(found, &st))
		fd = -errno;
	else if (S_ISLNK(st.st_mode))
		fd = -ELOOP;
	else if (S_ISDIR(st.st_mode))
		fd = -EISDIR;
	else if (!S_ISREG(st.st_mode))
		fd = -ENOTSUP;
	else if (!is_mine(&st))
		fd = -EACCES;
	else if (st.st_nlink > 1)
		fd = -EMLINK;
	else {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", found);
		fd = open(self, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	}
	close(found);
	return fd;
}

/* Whether it is empty or begins like a recording. */
static bool is_recording(int fd)
{
	uint32_t magic = 0;
	ssize_t n = pread(fd, &magic, sizeof(magic), 0);

	return n == 0 || (n == sizeof(magic) && magic == FT_BLOCK_MAGIC);
}

static int take(int fd)
{
	/* Some network file systems have no locks. */
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return -EWOULDBLOCK;
	if (!is_recording(fd))
		return -EEXIST;
	if (ftruncate(fd, 0) || fchmod(fd, 0600))
		return -errno;
	ft_give_to_caller(fd);
	return 0;
}

int ft_output_open(const char *path)
{
	int fd, rc;

	do {
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		fd = fd < 0 ? -errno : fd;
		if (fd == -EEXIST)
			fd = open_existing(path);
	} while (fd == -ENOENT && access(path, F_OK) == 0); /* it was deleted in between, and exists again */
	if (fd < 0)
		return fd;
	rc = take(fd);
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

int ft_output_create(int dir, const char *name)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	/* A reader that checks whether the file is being written has the lock for a moment. A file that is
	 * new has no other writer, so it is written in any case. */
	for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK && tries < LOCK_TRIES;
	     tries++)
		nanosleep(&pause, NULL);
	return fd;
}

const char *ft_writer_why(int error)
{
	switch (error) {
	case -ELOOP:
		return "it is a symbolic link, and those are not followed";
	case -EMLINK:
		return "it has more names than this one (hard links)";
	case -ENOTSUP:
		return "it is not a regular file";
	case -EEXIST:
		return "it contains something other than a recording and was not changed";
	case -EWOULDBLOCK:
		return "another recording is being written to it";
	case -EACCES:
		return "it belongs to another user, or its directory is not writable";
	default:
		return strerror(-error);
	}
}

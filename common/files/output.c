/* SPDX-License-Identifier: MIT */
/* See output.h. The file is opened before it is judged, and emptied after that, so that it cannot be
 * exchanged in between. */
#include "common/files/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The user who runs the program, also by sudo, or root. */
static bool is_trusted(uid_t user)
{
	const char *by = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
	return user == 0 || user == geteuid() || user == getuid() ||
	       (by && *by && user == (uid_t)strtoul(by, NULL, 10));
}

/* A link to an open file. In /dev/shm anybody may make links. */
static bool is_of_kernel(const char *path)
{
	return strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0 ||
	       strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/self/fd/", 14) == 0;
}

static bool is_in_trusted_directory(const char *path)
{
	char copy[PATH_MAX];
	struct stat st;
	if (strlen(path) >= sizeof copy)
		return false;
	strcpy(copy, path);
	return stat(dirname(copy), &st) == 0 && is_trusted(st.st_uid);
}

int output_check(const char *path)
{
	struct stat st;
	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISLNK(st.st_mode) || is_of_kernel(path))
		return 0;
	return is_trusted(st.st_uid) && is_in_trusted_directory(path) ? 0 : -ELOOP;
}

int output_open(const char *path)
{
	enum { NEW_FILE = 0666 };
	const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY;
	struct stat st;
	int fd = open(path, flags | (is_of_kernel(path) ? 0 : O_NOFOLLOW), NEW_FILE);
	if (fd < 0 && errno == ELOOP) {
		const int err = output_check(path);
		if (err)
			return err;
		fd = open(path, flags, NEW_FILE);
	}
	if (fd < 0)
		return -errno;
	int err = fstat(fd, &st) ? -errno : 0;
	if (!err && S_ISREG(st.st_mode))
		err = st.st_nlink > 1 && !is_in_trusted_directory(path) ? -EMLINK
		      : ftruncate(fd, 0)				? -errno
									: 0;
	if (!err)
		return fd;
	close(fd);
	return err;
}

FILE *output_fopen(const char *path)
{
	const int fd = output_open(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	if (fd < 0)
		errno = -fd;
	else if (!f)
		close(fd);
	return f;
}

const char *output_why(int error)
{
	return error == ELOOP ? "it is a symbolic link of another user, or in another user's directory"
	       : error == EMLINK
		   ? "the file has other names (hard links), and this one is in another user's directory"
		   : strerror(error);
}

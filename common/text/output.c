/* SPDX-License-Identifier: MIT */
/* Output: files that a user named, the service manager, the terminal. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/text.h"

/* The file is opened before it is judged, and emptied after that, so that it cannot be exchanged in between.
 */

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

int manager_connect(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const size_t length = path ? strlen(path) : 0;
	if (!length || length >= sizeof to.sun_path)
		return -1;
	memcpy(to.sun_path, path, length);
	if (*path == '@')
		*to.sun_path = 0;
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) == 0)
		return fd;
	close(fd);
	return -1;
}

void manager_send(int socket, const char *state, size_t length)
{
	struct iovec part = {(char *)state, length};
	/* The recorder's filter allows this call, and not send(). */
	if (socket >= 0)
		sendmsg(socket, &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1},
			MSG_NOSIGNAL | MSG_DONTWAIT);
}

size_t terminal_columns(int fd, size_t usual)
{
	enum { LEAST = 40, MOST = 500 };
	const char *text = getenv("COLUMNS");
	struct winsize size = {0};
	size_t columns = text && atoi(text) > 0 ? (size_t)atoi(text) : usual;

	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col)
		columns = size.ws_col;
	return columns < LEAST ? LEAST : columns > MOST ? MOST : columns;
}

bool can_rewrite_line(void)
{
	const char *kind = getenv("TERM");

	return isatty(STDERR_FILENO) && !(kind && strcmp(kind, "dumb") == 0);
}

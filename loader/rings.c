/* SPDX-License-Identifier: MIT */
/* Rings, from the links in /proc/PID/fd: a ring is a file of no file system, with a name of its own. */
#include "rings.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool has_ring(pid_t pid)
{
	static const char ring[] = "anon_inode:[io_uring]";
	char path[32], link[sizeof ring];
	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	DIR *dir = opendir(path);
	if (!dir)
		return false;
	bool found = false;
	for (struct dirent *e; !found && (e = readdir(dir));) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof link);
		found = n == sizeof ring - 1 && memcmp(link, ring, sizeof ring - 1) == 0;
	}
	closedir(dir);
	return found;
}

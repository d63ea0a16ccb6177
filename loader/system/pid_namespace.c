/* SPDX-License-Identifier: MIT */
/* The initial pid namespace is identified by its fixed inode number (PROC_PID_INIT_INO in the kernel). */
#include "loader/system/pid_namespace.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint32_t initial_pid_namespace = 0xeffffffc;

uint32_t pid_namespace(void)
{
	struct stat s;
	if (stat("/proc/self/ns/pid", &s) || (uint32_t)s.st_ino == initial_pid_namespace)
		return 0;
	return (uint32_t)s.st_ino;
}

bool proc_is_of_pid_namespace(void)
{
	char text[32];
	ssize_t n = readlink("/proc/self", text, sizeof text - 1);
	if (n <= 0)
		return false;
	text[n] = 0;
	return atol(text) == getpid();
}

/* SPDX-License-Identifier: MIT */
/* An io_uring is an anonymous file with its own name. */
#include "loader/sockets/io_uring.h"

#include <string.h>

#include "loader/sockets/proc_sockets.h"

static bool is_io_uring(void *context, const char *link)
{
	(void)context;
	return strcmp(link, "anon_inode:[io_uring]") == 0;
}

bool has_io_uring(pid_t pid)
{
	return any_link(pid, is_io_uring, NULL);
}

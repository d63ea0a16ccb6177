/* SPDX-License-Identifier: MIT */
/* Listening sockets of a network namespace and the processes that hold them, from /proc. */
#ifndef FORKTAIL_LOADER_LISTENERS_H
#define FORKTAIL_LOADER_LISTENERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { INODES_MAX = 64 };

/* Sockets by inode, at most INODES_MAX. */
struct inodes {
	unsigned long inode[INODES_MAX];
	size_t count;
};

/* Adds the sockets that listen on a TCP port or on a Unix socket's path (as bound, or by real path) in this
 * network namespace. Negative errno if /proc cannot be read. */
int listeners_on_port(struct inodes *found, int port);
int listeners_on_path(struct inodes *found, const char *path);

/* Whether the process holds one of these sockets. */
bool holds_socket(pid_t pid, const struct inodes *wanted);

/* The sockets that a process listens on: ["tcp:6379", "unix:/path"]. Empty if none is visible. */
json_t *listen_addresses(pid_t pid);

#ifdef __cplusplus
}
#endif

#endif

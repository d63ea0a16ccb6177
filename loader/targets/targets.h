/* SPDX-License-Identifier: MIT */
/* Which processes to trace: by pid, by listening port or Unix socket, by name, by cgroup or container. */
#ifndef FORKTAIL_LOADER_TARGETS_H
#define FORKTAIL_LOADER_TARGETS_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TARGETS_MAX = 1024 };

struct targets {
	pid_t pids[TARGETS_MAX]; /* no duplicates */
	size_t count;
};

/* Each adds what it finds and returns the number found (duplicates included), or a negative errno: -ESRCH no
 * such process, -ENOENT nothing listens there or nobody has that name, -E2BIG too many, -EACCES a listener
 * exists but belongs to no process that can be seen. */
int targets_add_pid(struct targets *t, pid_t pid);
/* "17" or "17,18"; -EINVAL: no such list. *which is the process that -ESRCH and -E2BIG are about; those
 * before it have been added. */
int targets_add_pids(struct targets *t, const char *list, pid_t *which);
int targets_add_port(struct targets *t, int port); /* TCP, in this network namespace */
int targets_add_unix(struct targets *t,
		     const char *path); /* compared as the server bound it, then by real path */
int targets_add_name(struct targets *t, const char *name); /* comm, or the executable's file name */

/* Every process in a cgroup and those below it. `path` is a directory of a cgroup file system, or the path in
 * any hierarchy below /sys/fs/cgroup ("/docker/1f2e...", "system.slice/redis.service"). -ENOENT: there is no
 * such cgroup, or nobody is in it. */
int targets_add_cgroup(struct targets *t, const char *path);
/* Every process of a systemd unit: "redis-server" (a service), "redis-server.service", "web.scope". */
int targets_add_unit(struct targets *t, const char *unit);
/* Every process of a container, by its name (Docker, Podman, LXC) or the beginning of its id. -ENOTUNIQ: the
 * ids of several begin so. */
int targets_add_container(struct targets *t, const char *which);

/* A TCP port, 1 to 65535, or -EINVAL. */
int port_number(const char *text);

#ifdef __cplusplus
}
#endif

#endif

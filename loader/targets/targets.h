/* SPDX-License-Identifier: MIT */
/* Which processes to trace: by pid, listening port or Unix socket, name, cgroup or container. */
#ifndef FORKTAIL_LOADER_TARGETS_H
#define FORKTAIL_LOADER_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TARGETS_MAX = 1024 };

struct targets {
	pid_t pids[TARGETS_MAX]; /* without duplicates */
	size_t count;
};

/* Each function adds the processes it finds and returns their number (duplicates included), or a negative
 * errno: -ESRCH no such process, -ENOENT no process listens there or has that name, -E2BIG too many, -EACCES
 * the listening process is not visible. */
int targets_add_pid(struct targets *t, pid_t pid);
/* "17" or "17,18". -EINVAL: not such a list. *which is the process for -ESRCH and -E2BIG; processes before it
 * have been added. */
int targets_add_pids(struct targets *t, const char *list, pid_t *which);
int targets_add_port(struct targets *t, int port); /* TCP, in this network namespace */
int targets_add_unix(struct targets *t,
		     const char *path); /* compared with the path that the server bound, then by real path */
int targets_add_name(struct targets *t, const char *name); /* comm, or the file name of the executable */

/* Every process in a cgroup and its child cgroups. `path` is a directory of a cgroup file system, or the path
 * in any hierarchy below /sys/fs/cgroup ("/docker/1f2e...", "system.slice/redis.service"). -ENOENT: no such
 * cgroup, or no process in it. */
int targets_add_cgroup(struct targets *t, const char *path);
/* Every process of a systemd unit: "redis-server" (a service), "redis-server.service", "web.scope". */
int targets_add_unit(struct targets *t, const char *unit);
/* Every process of a container, given its name (Docker, Podman, LXC) or the beginning of its id. -ENOTUNIQ:
 * several ids begin like this. */
int targets_add_container(struct targets *t, const char *which);

bool targets_has(const struct targets *t, pid_t pid);

/* A TCP port, 1 to 65535, or -EINVAL. */
int port_number(const char *text);

#ifdef __cplusplus
}
#endif

#endif

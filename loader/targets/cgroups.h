/* SPDX-License-Identifier: MIT */
/* Cgroups of processes, and the container or unit that their paths name. No container engine is asked: ids
 * are in the paths, names in files that engines write. */
#ifndef FORKTAIL_LOADER_CGROUPS_H
#define FORKTAIL_LOADER_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	CGROUP_BYTES = 1024,   /* a path with its terminator */
	CONTAINER_BYTES = 256, /* a container's id (64 hex digits), or for LXC its name */
	CGROUP_NAME_BYTES = 320,
};

/* `root` is "" or a directory that replaces the root of the file system. */

/* The path of a process' cgroup, "/docker/1f2e...", in the hierarchy of a version 1 controller ("freezer"),
 * or with "" of version 2. False: it has none, or the process has exited. */
bool cgroup_of(const char *root, pid_t pid, const char *controller, char path[CGROUP_BYTES]);
/* The same from a file like /proc/PID/cgroup. */
bool cgroup_in(const char *file, const char *controller, char path[CGROUP_BYTES]);
/* The most informative path: one with a container, otherwise one with a unit, otherwise the first that is not
 * the root. */
bool cgroup_best(const char *root, pid_t pid, char path[CGROUP_BYTES]);

/* The container that the path, or a part of it, belongs to. */
bool cgroup_container(const char *path, char id[CONTAINER_BYTES]);
/* The innermost systemd service or scope in the path: "redis-server.service". False: none. */
bool cgroup_unit(const char *path, char *name, size_t size);
/* A description: "container web (1f2e3d4c5b6a)", "container 1f2e3d4c5b6a" if its name is unknown, "unit
 * redis.service", or "". */
void cgroup_name(const char *root, const char *path, char name[CGROUP_NAME_BYTES]);

/* The id of the container with this name, from the files of Docker and Podman. False: not found. */
bool container_id(const char *root, const char *name, char id[CONTAINER_BYTES]);
/* The reverse. */
bool container_name(const char *root, const char *id, char name[CONTAINER_BYTES]);

#ifdef __cplusplus
}
#endif

#endif

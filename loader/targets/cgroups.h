/* SPDX-License-Identifier: MIT */
/* Cgroups of processes, and what their paths say: which container or unit a process is of. No container
 * engine is asked: ids are in the paths, names in files that engines keep. */
#ifndef FORKTAIL_LOADER_CGROUPS_H
#define FORKTAIL_LOADER_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	CGROUP_BYTES = 1024,   /* a path, with its end */
	CONTAINER_BYTES = 256, /* a container's id (64 hex digits) or, of LXC, its name */
	CGROUP_NAME_BYTES = 320,
};

/* `root` is "" or a directory that is taken for the file system's root. */

/* The path of a process' cgroup, "/docker/1f2e...", in the hierarchy of a version 1 controller ("freezer")
 * or, with "", in that of version 2. False: it is in none, or has ended. */
bool cgroup_of(const char *root, pid_t pid, const char *controller, char path[CGROUP_BYTES]);
/* The same from a file like /proc/PID/cgroup. */
bool cgroup_in(const char *file, const char *controller, char path[CGROUP_BYTES]);
/* The one of its paths that says most: which container, else which unit, else the first that is no root. */
bool cgroup_best(const char *root, pid_t pid, char path[CGROUP_BYTES]);

/* The container whose cgroup, or a part of whose cgroup, the path is. */
bool cgroup_container(const char *path, char id[CONTAINER_BYTES]);
/* The innermost service or scope of systemd's in the path: "redis-server.service". False: it is in none. */
bool cgroup_unit(const char *path, char *name, size_t size);
/* What the path says: "container web (1f2e3d4c5b6a)", "container 1f2e3d4c5b6a" if its name isn't known,
 * "unit redis.service"; "" if nothing. */
void cgroup_name(const char *root, const char *path, char name[CGROUP_NAME_BYTES]);

/* The id of the container of that name, as Docker and Podman have written it down. False: none has it. */
bool container_id(const char *root, const char *name, char id[CONTAINER_BYTES]);
/* The reverse. */
bool container_name(const char *root, const char *id, char name[CONTAINER_BYTES]);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
/* Files of the cgroups of processes, in version 1 or 2: cpu.max, memory.events. */
#ifndef FORKTAIL_LOADER_CGROUP_FILES_H
#define FORKTAIL_LOADER_CGROUP_FILES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CGROUP_PATH_BYTES = 256 };

/* The hierarchy with one controller. */
struct cgroup_hierarchy {
	bool v2;
	const char *controller;
	char proc[CGROUP_PATH_BYTES];  /* where proc is mounted */
	char mount[CGROUP_PATH_BYTES]; /* where the hierarchy is mounted */
	char root[CGROUP_PATH_BYTES];  /* which part of it is mounted: "/" except in a container */
};

/* Finds a version 1 mount with the controller ("cpu"), otherwise the unified hierarchy. False: neither.
 * `controller` is kept. */
bool cgroup_hierarchy_find(struct cgroup_hierarchy *h, const char *proc, const char *controller);

/* The cgroup in the hierarchy ("/a/b") of the process or thread with this directory in proc ("12/task/13").
 * False: none. */
bool cgroup_hierarchy_of(const struct cgroup_hierarchy *h, const char *directory,
			 char cgroup[CGROUP_PATH_BYTES]);

/* Reads a file of a cgroup, as read_text() does. False if it cannot be read. */
bool cgroup_file_read(const struct cgroup_hierarchy *h, const char *cgroup, const char *file, char *text,
		      size_t size);

/* The number after a key at the beginning of a line: "oom_kill 3". False: no such line. */
bool cgroup_number(const char *text, const char *key, double *value);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
/* Opens files that a target has mapped, as root, without being redirected to other files. */
#ifndef FORKTAIL_LOADER_MAPPED_OPEN_H
#define FORKTAIL_LOADER_MAPPED_OPEN_H

#include <sys/types.h>

#include "loader/samples/mappings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which mounts of a process are served by another process (FUSE). Caller frees it. NULL: no memory. */
struct mounts;
struct mounts *mounts_read(pid_t pid);

/* Those of the process, and our own; either may be NULL. */
enum { MOUNTS = 2 };

/* Opens a mapped file of a process for reading. Opens only the regular file that is mapped, whatever its path
 * leads to now. Returns a negative errno on failure: -ESTALE if another file is at its path, -ENOTSUP if it
 * is not a regular file or is on a file system that a process serves (FUSE), or may serve: on a mount that
 * neither the process nor the recorder sees. */
int mapped_open(const struct mounts *const mounts[MOUNTS], pid_t pid, const struct mapped_file *file);

#ifdef __cplusplus
}
#endif

#endif

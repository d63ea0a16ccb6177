/* SPDX-License-Identifier: MIT */
/* Opens files that a target has mapped, as root, without being redirected to other files. */
#ifndef FORKTAIL_LOADER_MAPPED_OPEN_H
#define FORKTAIL_LOADER_MAPPED_OPEN_H

#include <sys/types.h>

#include "loader/samples/mappings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a mapped file of a process for reading. Never blocks. Opens only the regular file that is mapped,
 * whatever its path leads to now. Returns a negative errno on failure: -ESTALE if another file is at its
 * path, -ENOTSUP if it is not a regular file or is on a file system that a process serves (FUSE), or may
 * serve: on a mount that neither the process nor the recorder sees. */
int mapped_open(pid_t pid, const struct mapped_file *file);

#ifdef __cplusplus
}
#endif

#endif

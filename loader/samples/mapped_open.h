/* SPDX-License-Identifier: MIT */
/* Opening what a target has mapped, as root, without being led anywhere else. */
#ifndef FORKTAIL_LOADER_MAPPED_OPEN_H
#define FORKTAIL_LOADER_MAPPED_OPEN_H

#include <sys/types.h>

#include "loader/samples/mappings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a process' mapped file for reading; never waits. What is opened is the file that is mapped, whatever
 * its path leads to by now, and a regular file. A negative errno if that can't be: -ESTALE when another one
 * lies at its path, -ENOTSUP when it is no regular file, or one of a file system that a process serves
 * (FUSE). */
int mapped_open(pid_t pid, const struct mapped_file *file);

#ifdef __cplusplus
}
#endif

#endif

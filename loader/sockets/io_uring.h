/* SPDX-License-Identifier: MIT */
/* Whether a process works over io_uring: then its event loop's descriptors tell nothing of its connections.
 */
#ifndef FORKTAIL_LOADER_IO_URING_H
#define FORKTAIL_LOADER_IO_URING_H

#include <stdbool.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Has the process a descriptor of an io_uring? One that it registered with the ring itself and then closed is
 * not seen. False also if /proc can't say. */
bool has_io_uring(pid_t pid);

#ifdef __cplusplus
}
#endif

#endif

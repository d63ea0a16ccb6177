/* SPDX-License-Identifier: MIT */
/* Whether a process uses io_uring: then the descriptors of its event loop do not show its connections. */
#ifndef FORKTAIL_LOADER_IO_URING_H
#define FORKTAIL_LOADER_IO_URING_H

#include <stdbool.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the process has a descriptor of an io_uring. A ring that registered its own descriptor and then
 * closed it is not detected. Also false if /proc cannot be read. */
bool has_io_uring(pid_t pid);

#ifdef __cplusplus
}
#endif

#endif

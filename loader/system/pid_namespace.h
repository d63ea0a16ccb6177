/* SPDX-License-Identifier: MIT */
/* The recorder's pid namespace. Ids from users and in /proc belong to it; the kernel programs translate
 * them. */
#ifndef FORKTAIL_LOADER_PID_NAMESPACE_H
#define FORKTAIL_LOADER_PID_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the inode of the recorder's pid namespace. 0: the initial one, or the kernel has no others. */
uint32_t pid_namespace(void);

/* Whether /proc shows that namespace. Otherwise process ids have no meaning. */
bool proc_is_of_pid_namespace(void);

#endif

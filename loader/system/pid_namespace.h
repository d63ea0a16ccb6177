/* SPDX-License-Identifier: MIT */
/* Which pid namespace the recorder is in. Ids that users give and that /proc shows are of that one; the
 * kernel programs translate. */
#ifndef FORKTAIL_LOADER_PID_NAMESPACE_H
#define FORKTAIL_LOADER_PID_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>

/* The recorder's pid namespace, by its inode; 0: the initial one (or the kernel has no others). */
uint32_t pid_namespace(void);

/* Whether /proc shows that namespace. Without, no id means anything. */
bool proc_is_of_pid_namespace(void);

#endif

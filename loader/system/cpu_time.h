/* SPDX-License-Identifier: MIT */
/* CPU time of the recorder's processes. */
#ifndef FORKTAIL_LOADER_CPU_TIME_H
#define FORKTAIL_LOADER_CPU_TIME_H

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* CPU time of all threads of a process so far. 0 if there is no process of that id. */
uint64_t cpu_time_ns(pid_t pid);
uint64_t own_cpu_ns(void);
uint64_t thread_cpu_ns(void); /* of this thread */

#ifdef __cplusplus
}
#endif

#endif

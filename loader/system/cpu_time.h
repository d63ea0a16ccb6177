/* SPDX-License-Identifier: MIT */
/* What processes of the recorder cost. */
#ifndef FORKTAIL_LOADER_CPU_TIME_H
#define FORKTAIL_LOADER_CPU_TIME_H

#include <stdint.h>
#include <sys/types.h>

/* CPU time that a process' threads have taken so far. 0 when there is none of that id. */
uint64_t cpu_time_ns(pid_t pid);
uint64_t own_cpu_ns(void);

#endif

/* SPDX-License-Identifier: MIT */
/* Uses the kernel's clocks, which even a process without any other permissions can read. */
#include "loader/system/cpu_time.h"

#include <time.h>

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

uint64_t cpu_time_ns(pid_t pid)
{
	clockid_t clock;

	return pid && clock_getcpuclockid(pid, &clock) == 0 ? read_clock(clock) : 0;
}

uint64_t own_cpu_ns(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t thread_cpu_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

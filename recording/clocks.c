/* SPDX-License-Identifier: MIT */
/* The clocks of this host. A recording contains readings of all three, so that its monotonic times can be
 * shown as wall-clock times and compared with another host's. */
#include "recording.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t ft_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

void ft_clock_read(struct ft_clock *c)
{
	c->error_ns = UINT64_MAX;
	/* An interrupt or a preemption between two reads widens the bracket; one of many attempts is
	 * undisturbed. */
	for (int i = 0; i < 16; i++) {
		uint64_t before = read_clock(CLOCK_MONOTONIC);
		uint64_t realtime = read_clock(CLOCK_REALTIME);
		uint64_t boottime = read_clock(CLOCK_BOOTTIME);
		uint64_t half = (read_clock(CLOCK_MONOTONIC) - before + 1) / 2;

		if (half < c->error_ns)
			*c = (struct ft_clock){.monotonic_ns = before + half,
					       .realtime_ns = realtime,
					       .boottime_ns = boottime,
					       .error_ns = half};
	}
}

void ft_boot_id(char out[40])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd >= 0) {
		n = read(fd, out, 39);
		close(fd);
	}
	out[n > 0 ? n : 0] = 0;
	out[strcspn(out, "\n")] = 0;
}

/* The kernel shows the offsets of future children. They are this process' own unless it has requested another
 * namespace for its children. */
static bool read_shift(int64_t *s, int64_t *ns)
{
	FILE *in = fopen("/proc/self/timens_offsets", "re");
	char clock[32];
	bool found = false;

	while (in && !found && fscanf(in, "%31s %" SCNd64 " %" SCNd64, clock, s, ns) == 3)
		found = strcmp(clock, "monotonic") == 0;
	if (in)
		fclose(in);
	return found;
}

void ft_clock_id(char out[FT_CLOCK_ID_BYTES])
{
	char own[32] = "", childrens[32] = "";
	int64_t s = 0, ns = 0;
	size_t length;

	ft_boot_id(out);
	length = strlen(out);
	if (readlink("/proc/self/ns/time", own, sizeof(own) - 1) <= 0)
		return; /* a kernel without them */
	if (readlink("/proc/self/ns/time_for_children", childrens, sizeof(childrens) - 1) <= 0 ||
	    strcmp(own, childrens) != 0 || !read_shift(&s, &ns))
		snprintf(out + length, FT_CLOCK_ID_BYTES - length, "+%s", own);
	else if (s || ns)
		snprintf(out + length, FT_CLOCK_ID_BYTES - length, "+monotonic:%" PRId64 ".%09" PRId64, s,
			 ns);
}

/* SPDX-License-Identifier: MIT */
/* Histograms, clocks and names of system calls. */
#include <asm/unistd.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "recording/recording.h"

/* The histogram's arithmetic. A value of b bits keeps its upper 11: slots are 2^(b-11) wide, so the error is
 * below 1 in 1024 of the value. The layout is HdrHistogram's (Gil Tene), with half a table per power of two
 * above the first. */

#define SUB_COUNT (1u << FT_HIST_SUB_BITS)
#define LARGEST ((1ull << (FT_HIST_SUB_BITS + FT_HIST_BUCKETS - 1)) - 1)

_Static_assert(FT_HIST_SLOTS == FT_HIST_BUCKETS * (SUB_COUNT / 2) + SUB_COUNT / 2, "slots");

static unsigned slot_of(uint64_t value)
{
	unsigned bucket = 64 - FT_HIST_SUB_BITS - (unsigned)__builtin_clzll(value | (SUB_COUNT - 1));

	return bucket * (SUB_COUNT / 2) + (unsigned)(value >> bucket);
}

uint64_t ft_histogram_slot_value(unsigned slot)
{
	unsigned bucket = slot < SUB_COUNT ? 0 : slot / (SUB_COUNT / 2) - 1;
	uint64_t sub = slot - bucket * (SUB_COUNT / 2);

	return ((sub + 1) << bucket) - 1;
}

void ft_histogram_reset(struct ft_histogram *h)
{
	memset(h, 0, sizeof(*h));
}

void ft_histogram_add_equal(struct ft_histogram *h, uint64_t value_ns, uint32_t times)
{
	uint64_t v = value_ns > LARGEST ? LARGEST : value_ns;

	h->slots[slot_of(v)] += times;
	if (v < h->min_ns || !h->count)
		h->min_ns = v;
	if (v > h->max_ns)
		h->max_ns = v;
	h->count += times;
	h->sum_ns += (double)v * times;
	h->sum_squares += (double)v * (double)v * times;
}

void ft_histogram_merge(struct ft_histogram *into, const struct ft_histogram *from)
{
	if (!from->count)
		return;
	if (from->min_ns < into->min_ns || !into->count)
		into->min_ns = from->min_ns;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
	into->count += from->count;
	into->sum_ns += from->sum_ns;
	into->sum_squares += from->sum_squares;
	for (unsigned i = 0; i < FT_HIST_SLOTS; i++)
		into->slots[i] += from->slots[i];
}

uint64_t ft_histogram_percentile(const struct ft_histogram *h, double percentile)
{
	/* Nearest rank: the smallest value that at least this share of the values does not exceed. The factor
	 * keeps 99.9 % of 1000, which binary fractions make 999.0000000000001, at rank 999. */
	double rank = ceil(percentile * (double)h->count / 100.0 * (1 - 1e-12));
	uint64_t wanted = rank >= 1 ? (uint64_t)rank : 1, seen = 0;

	if (!h->count)
		return 0;
	for (unsigned i = 0; i < FT_HIST_SLOTS; i++) {
		seen += h->slots[i];
		if (seen >= wanted)
			return ft_histogram_slot_value(i) < h->max_ns ? ft_histogram_slot_value(i)
								      : h->max_ns;
	}
	return h->max_ns;
}

double ft_histogram_mean(const struct ft_histogram *h)
{
	return h->count ? h->sum_ns / (double)h->count : 0;
}

double ft_histogram_stddev(const struct ft_histogram *h)
{
	double mean = ft_histogram_mean(h), variance;

	if (!h->count)
		return 0;
	variance = h->sum_squares / (double)h->count - mean * mean;
	return variance > 0 ? sqrt(variance) : 0; /* rounding may give slightly less than zero */
}

/* The clocks of this host. A recording contains readings of all three, so that its monotonic times can be
 * shown as wall-clock times and compared with another host's. */

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

/* The table that cmake/syscall_names.cmake generates from <asm/unistd.h>, and its lookup. */

static const char *const names[] = {
#include "syscall_names.inc"
};

int ft_syscall_limit(void)
{
	return (int)(sizeof names / sizeof *names);
}

const char *ft_syscall_name(int number)
{
	return number >= 0 && number < ft_syscall_limit() ? names[number] : NULL;
}

/* SPDX-License-Identifier: MIT */
/* The recorder's CPUs and CPU time, files of /proc.
 *
 * A recorder on the server's CPUs takes CPU time and cache space from it. If the server is pinned, some CPUs
 * are free of it, and the recorder moves there: at most twenty times per second for some hundred
 * microseconds. In any case it lowers its priority: nice 10, as a batch thread, so that its wake-ups never
 * preempt a running server. It goes no lower: a thread at nice 19, or an idle one, gets 1.5 or 0.3 % of a
 * busy CPU, and a ring that is emptied too late loses events. At nice 10 it gets 10 %, of which it needs one.
 * It works in short pieces: a thread that waits for the CPU meanwhile would otherwise get it with the next
 * timer tick only, which may be 4 ms later. */
#include "loader/system.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bpf/events.h"

enum {
	NICE = 10,
	SLICE_NS = 100000, /* the least; before Linux 6.12 all threads have the same slices */
	PIECE_NS = 500000,
	CALLS = 32, /* of some microseconds, between two looks at the clock */
};

/* Adds the CPUs of a process' threads. */
static void add_cpus_of(pid_t pid, cpu_set_t *all, cpu_set_t *one, size_t bytes)
{
	char path[32];
	snprintf(path, sizeof path, "/proc/%d/task", pid);
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));)
		if (isdigit((unsigned char)e->d_name[0]) &&
		    sched_getaffinity((pid_t)atoi(e->d_name), bytes, one) == 0)
			CPU_OR_S(bytes, all, all, one);
	if (d)
		closedir(d);
}

void affinity_avoid(const pid_t *pids, size_t count)
{
	const size_t bytes = CPU_ALLOC_SIZE(FT_MAX_CPUS);
	cpu_set_t *own = CPU_ALLOC(FT_MAX_CPUS), *theirs = CPU_ALLOC(FT_MAX_CPUS),
		  *one = CPU_ALLOC(FT_MAX_CPUS);
	if (own && theirs && one && sched_getaffinity(0, bytes, own) == 0) {
		CPU_ZERO_S(bytes, theirs);
		for (size_t i = 0; i < count; i++)
			add_cpus_of(pids[i], theirs, one, bytes);
		/* Own CPUs that the processes do not use. */
		CPU_AND_S(bytes, theirs, theirs, own);
		CPU_XOR_S(bytes, own, own, theirs);
		/* If the CPU is offline or no longer in our cpuset, the recorder stays where it is. */
		if (CPU_COUNT_S(bytes, own))
			sched_setaffinity(0, bytes, own);
	}
	CPU_FREE(own);
	CPU_FREE(theirs);
	CPU_FREE(one);
}

static int set_policy(unsigned policy, int nice)
{
	/* struct sched_attr of <linux/sched/types.h>, which does not agree with <sched.h> */
	const struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t slice_ns, deadline_ns, period_ns;
	} attributes = {.size = sizeof attributes, .policy = policy, .nice = nice, .slice_ns = SLICE_NS};
	return syscall(SYS_sched_setattr, 0, &attributes, 0) ? -errno : 0;
}

int slices_shorten(void)
{
	return set_policy((unsigned)sched_getscheduler(0), getpriority(PRIO_PROCESS, 0));
}

int priority_lower(void)
{
	return set_policy(SCHED_BATCH, NICE);
}

static uint64_t piece_ns; /* the main thread's CPU time when the piece began */

void cpu_piece_begins(void)
{
	piece_ns = thread_cpu_ns();
}

void cpu_offer(void)
{
	if (thread_cpu_ns() - piece_ns < PIECE_NS)
		return;
	sched_yield();
	cpu_piece_begins();
}

void cpu_offer_in_loop(void)
{
	static unsigned calls;
	if (++calls % CALLS == 0)
		cpu_offer();
}

/* Uses the kernel's clocks, which even a process without any other permissions can read. */

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

/* Looks that take c1, c2 ... and are repeated after p1, p2 ... take c1/p1 + c2/p2 + ... of the time. With
 * pi = share * sqrt(ci) * (sqrt(c1) + sqrt(c2) + ...) that is 1/share, and the sum of the pauses is the
 * smallest that this allows. */

enum { LOOKS_SHARE = 200 };

static uint64_t roots; /* of all looks */

bool look_begins(struct look *l, uint64_t now_ns)
{
	if (now_ns < l->due_ns)
		return false;
	l->begun_ns = now_ns;
	l->begun_cpu_ns = thread_cpu_ns();
	return true;
}

void look_ends(struct look *l, uint64_t least_ns)
{
	const uint64_t root = (uint64_t)sqrt((double)(thread_cpu_ns() - l->begun_cpu_ns));
	roots += root - l->root;
	l->root = root;
	const uint64_t pause_ns = LOOKS_SHARE * root * roots;
	l->due_ns = l->begun_ns + (pause_ns > least_ns ? pause_ns : least_ns);
}

void look_soon(struct look *l)
{
	l->due_ns = 0;
}

void look_close(struct look *l)
{
	roots -= l->root;
	*l = (struct look){.due_ns = 0};
}

/* One read() of a long file in /proc returns at most a page of whole lines, whatever size is requested. The
 * end is a read that returns nothing. */

enum { FIRST_ROOM = 1 << 16, READ_AT_LEAST = 4096 };

ssize_t read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
	int err = n < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	text[err ? 0 : n] = 0;
	return err ? err : n;
}

int read_proc(pid_t pid, const char *file, char *text, size_t size)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	ssize_t n = read_text(path, text, size);
	for (ssize_t i = 0; i < n; i++)
		if (text[i] == 0)
			text[i] = ' ';
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		text[--n] = 0;
	return (int)n;
}

static bool make_room(struct text *t, size_t most)
{
	size_t room = t->room ? 2 * t->room : FIRST_ROOM;
	char *grown = room > most ? NULL : realloc(t->bytes, room);

	if (!grown)
		return false;
	t->bytes = grown;
	t->room = room;
	return true;
}

bool text_read(struct text *t, int fd, size_t most)
{
	ssize_t n = -1;

	t->length = 0;
	while (t->room - t->length >= READ_AT_LEAST || make_room(t, most)) {
		n = pread(fd, t->bytes + t->length, t->room - 1 - t->length, (off_t)t->length);
		if (n <= 0)
			break;
		t->length += (size_t)n;
	}
	if (t->bytes)
		t->bytes[t->length] = 0;
	return n == 0;
}

bool text_read_at(struct text *t, int directory, const char *path, size_t most)
{
	int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
	bool whole = text_read(t, fd, most);

	if (fd >= 0)
		close(fd);
	return whole;
}

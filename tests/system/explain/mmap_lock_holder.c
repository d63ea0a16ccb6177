/* SPDX-License-Identifier: MIT */
/* Holds the mmap lock of the process into which it is preloaded (LD_PRELOAD), most of the time, and measures
 * the main thread's mmap calls.
 *
 * A new thread maps memory with all its pages, for which the kernel holds the lock for reading, and unmaps
 * it. $FORKTAIL_HOLD_MB: how many megabytes at once; without it nothing happens. $FORKTAIL_HOLD_CLOCK: a file
 * of at least 8 bytes, which gets the sum of the main thread's calls, in nanoseconds. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t *sum_ns;

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Replaces the C library's function, for the allocator. */
void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	uint64_t since_ns = now_ns();
	void *memory = (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
	if (sum_ns && gettid() == getpid())
		*sum_ns += now_ns() - since_ns;
	return memory;
}

static void *hold(void *arg)
{
	size_t bytes = *(size_t *)arg;
	for (;;) {
		void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (memory != MAP_FAILED)
			munmap(memory, bytes);
		usleep(1000);
	}
	return NULL;
}

static void __attribute__((constructor)) begin(void)
{
	static size_t bytes;
	static pthread_t thread;
	const char *megabytes = getenv("FORKTAIL_HOLD_MB"), *path = getenv("FORKTAIL_HOLD_CLOCK");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *page =
	    fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *sum_ns, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (page != MAP_FAILED)
		sum_ns = page;
	bytes = megabytes ? strtoull(megabytes, NULL, 10) << 20 : 0;
	if (bytes)
		pthread_create(&thread, NULL, hold, &bytes);
}

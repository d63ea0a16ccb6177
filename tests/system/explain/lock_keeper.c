/* SPDX-License-Identifier: MIT */
/* Preloaded into a server (LD_PRELOAD), it makes two threads share a lock: the main thread takes it for each
 * write(), and a new thread, "keeper", holds it for a while every 200 ms.
 *
 * $FORKTAIL_KEEP: how, "code" (computing) or "pipe" (waiting in read for a slow peer); without it nothing
 * happens. $FORKTAIL_KEEP_MS: for how long. $FORKTAIL_KEEP_CLOCK: a file of at least 16 bytes, which gets the
 * keeper's thread id and the total time the main thread has waited for the lock, in nanoseconds. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct {
	volatile uint64_t keeper, waited_ns;
} * shown;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t keep_ns;
static int computes, slow[2];

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	nanosleep(&t, NULL);
}

/* Replaces the C library's function. */
ssize_t write(int fd, const void *bytes, size_t count)
{
	if (shown && gettid() == getpid()) {
		uint64_t since_ns = now_ns();
		pthread_mutex_lock(&lock);
		shown->waited_ns += now_ns() - since_ns;
		pthread_mutex_unlock(&lock);
	}
	return syscall(SYS_write, fd, bytes, count);
}

__attribute__((noinline, visibility("default"))) void keep_computing(void)
{
	static volatile uint64_t sum;
	for (uint64_t until_ns = now_ns() + keep_ns; now_ns() < until_ns;)
		for (int i = 0; i < 10000; i++)
			sum += (uint64_t)i;
}

static void *keep(void *arg)
{
	pthread_setname_np(pthread_self(), "keeper");
	shown->keeper = (uint64_t)gettid();
	for (;;) {
		char c;
		sleep_ns(200000000);
		pthread_mutex_lock(&lock);
		if (computes)
			keep_computing();
		else if (syscall(SYS_write, slow[1], "x", 1) != 1 || read(slow[0], &c, 1) != 1)
			break;
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

/* Reads the keeper's question and delays the answer. */
static void *answer_slowly(void *arg)
{
	int *ends = arg;
	char c;
	while (read(ends[0], &c, 1) == 1) {
		sleep_ns(keep_ns);
		if (syscall(SYS_write, ends[1], &c, 1) != 1)
			break;
	}
	return NULL;
}

static void __attribute__((constructor)) begin(void)
{
	static pthread_t keeper, slowly;
	static int to[2], from[2], ends[2];
	const char *how = getenv("FORKTAIL_KEEP"), *ms = getenv("FORKTAIL_KEEP_MS"),
		   *path = getenv("FORKTAIL_KEEP_CLOCK");
	int fd = how && ms && path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *page =
	    fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *shown, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (page == MAP_FAILED || pipe(to) || pipe(from))
		return;
	shown = page;
	computes = strcmp(how, "code") == 0;
	keep_ns = strtoull(ms, NULL, 10) * 1000000;
	slow[0] = from[0];
	slow[1] = to[1];
	ends[0] = to[0];
	ends[1] = from[1];
	pthread_create(&keeper, NULL, keep, NULL);
	pthread_create(&slowly, NULL, answer_slowly, ends);
}

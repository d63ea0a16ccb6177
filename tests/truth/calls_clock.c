/* SPDX-License-Identifier: MIT */
/* Times a server's calls on files from inside of it (LD_PRELOAD), to compare forktail's times with.
 *
 * Each call's length is added to its thread's sum in a shared file, $FORKTAIL_CALLS_CLOCK, an array of struct
 * thread_calls. The suite reads it while the server runs. Nothing is delayed or changed.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum call { SYNC, WRITE, RENAME, CALLS };
enum { THREADS = 64 };

struct thread_calls {
	uint64_t tid; /* 0: unused */
	uint64_t ns[CALLS];
};

static struct thread_calls *table;
static __thread struct thread_calls *mine;

static void __attribute__((constructor)) map_table(void)
{
	const char *path = getenv("FORKTAIL_CALLS_CLOCK");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	table = mmap(NULL, THREADS * sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (table == MAP_FAILED)
		table = NULL;
	close(fd);
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void add(enum call call, uint64_t since_ns)
{
	uint64_t ns = now_ns() - since_ns, tid = (uint64_t)gettid();
	/* After a fork the child has its parent's variables and must find its own row. */
	for (int i = 0; table && (!mine || mine->tid != tid) && i < THREADS; i++) {
		uint64_t unused = 0;
		if (table[i].tid == tid || __atomic_compare_exchange_n(&table[i].tid, &unused, tid, 0,
								       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			mine = &table[i];
	}
	if (mine && mine->tid == tid)
		mine->ns[call] += ns;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int fsync(int fd)
{
	uint64_t since = now_ns();
	int result = NEXT(fsync)(fd);
	add(SYNC, since);
	return result;
}

int fdatasync(int fd)
{
	uint64_t since = now_ns();
	int result = NEXT(fdatasync)(fd);
	add(SYNC, since);
	return result;
}

int rename(const char *from, const char *to)
{
	uint64_t since = now_ns();
	int result = NEXT(rename)(from, to);
	add(RENAME, since);
	return result;
}

ssize_t write(int fd, const void *data, size_t bytes)
{
	struct stat s;
	if (fstat(fd, &s) || !S_ISREG(s.st_mode))
		return NEXT(write)(fd, data, bytes);
	uint64_t since = now_ns();
	ssize_t result = NEXT(write)(fd, data, bytes);
	add(WRITE, since);
	return result;
}

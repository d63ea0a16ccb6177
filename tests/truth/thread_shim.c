/* SPDX-License-Identifier: MIT */
/* Delays one thread of a server from inside of it (LD_PRELOAD): the truth suite's injections into servers
 * with several threads.
 *
 * The suite writes an order into a shared file, $FORKTAIL_THREAD_SHIM: a thread of this name shall sleep, or
 * burn its CPU, for this long, in its next call of one kind: before a read, before a write, or holding a
 * mutex that it has just got. The first such thread takes the order, carries it out once, and writes its id
 * and the times (CLOCK_MONOTONIC). Without an order nothing is delayed. tests/truth/host.py has the same
 * structure.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum state { NOTHING, ASKED, TAKEN, DONE };
enum call { READ, WRITE, LOCK };

struct order {
	uint32_t state; /* set last by the suite or the thread */
	uint32_t call;
	uint32_t burn; /* otherwise it sleeps */
	uint32_t unused;
	char comm[16];
	uint64_t ns;
	/* the result */
	uint64_t tid, start_ns, end_ns, cpu_ns;
};

enum { LOCKS = 4096 };

/* The last owner of a mutex. Only a mutex that another thread owned before is useful, because no other thread
 * waits for a thread's own mutex. Not exact: mutexes may share a row, and then an order is taken a little
 * later. */
struct lock {
	const pthread_mutex_t *mutex;
	uint64_t tid;
};

static struct order *order;
static struct lock locks[LOCKS];
static __thread uint64_t own_tid;

static void __attribute__((constructor)) map_order(void)
{
	const char *path = getenv("FORKTAIL_THREAD_SHIM");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	order = mmap(NULL, sizeof *order, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (order == MAP_FAILED)
		order = NULL;
	close(fd);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t this_thread(void)
{
	if (!own_tid)
		own_tid = (uint64_t)gettid();
	return own_tid;
}

static bool is_called(const char *name)
{
	char comm[16] = "";
	prctl(PR_GET_NAME, comm);
	return strncmp(comm, name, sizeof comm) == 0;
}

static bool asked_for(enum call call)
{
	return order && __atomic_load_n(&order->state, __ATOMIC_ACQUIRE) == ASKED && order->call == call &&
	       is_called(order->comm);
}

static void carry_out(void)
{
	uint32_t asked = ASKED;
	if (!__atomic_compare_exchange_n(&order->state, &asked, TAKEN, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	uint64_t cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID), until;
	order->tid = this_thread();
	order->start_ns = now_ns(CLOCK_MONOTONIC);
	until = order->start_ns + order->ns;
	struct timespec t = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
	if (order->burn)
		while (now_ns(CLOCK_MONOTONIC) < until)
			;
	else
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	order->end_ns = now_ns(CLOCK_MONOTONIC);
	order->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	__atomic_store_n(&order->state, DONE, __ATOMIC_RELEASE);
}

static void before(enum call call)
{
	if (asked_for(call))
		carry_out();
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
/* Looked up once, because each of these is called for every request. */
#define REAL(name)                                                                                           \
	static __typeof__(&name) real;                                                                       \
	if (!real)                                                                                           \
	real = NEXT(name)

ssize_t read(int fd, void *data, size_t bytes)
{
	REAL(read);
	before(READ);
	return real(fd, data, bytes);
}

ssize_t recv(int fd, void *data, size_t bytes, int flags)
{
	REAL(recv);
	before(READ);
	return real(fd, data, bytes, flags);
}

ssize_t write(int fd, const void *data, size_t bytes)
{
	REAL(write);
	before(WRITE);
	return real(fd, data, bytes);
}

ssize_t writev(int fd, const struct iovec *pieces, int count)
{
	REAL(writev);
	before(WRITE);
	return real(fd, pieces, count);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	REAL(sendmsg);
	before(WRITE);
	return real(fd, message, flags);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	REAL(pthread_mutex_lock);
	int failed = real(mutex);
	if (failed || !order)
		return failed;
	struct lock *lock = &locks[(uintptr_t)mutex / sizeof(pthread_mutex_t) % LOCKS];
	bool others = lock->mutex == mutex && lock->tid != this_thread();
	*lock = (struct lock){mutex, this_thread()};
	if (others)
		before(LOCK);
	return 0;
}

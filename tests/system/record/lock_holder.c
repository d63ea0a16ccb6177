/* SPDX-License-Identifier: MIT */
/* A server delayed by its own threads: lock_holder HOW MS. Its main thread waits in epoll for SIGUSR1. At
 * each signal it makes another thread, "holder", take a lock, waits for that lock itself, and prints how many
 * nanoseconds that took. The holder holds it for MS milliseconds:
 *
 *   code       computing
 *   pipe       blocked in reading a pipe
 *   poll       waiting for a client in poll
 *   chain      computing, while "middle" waits for the lock before main does, and then holds it for as long
 *   condition  computing, and main waits for a condition instead of the lock
 *   inherit    computing; the lock has priority inheritance
 *   fastlock   computing; the lock is laid out as KeyDB's: a ticket, its owner 64 bytes before
 *   nobody     no lock is taken: main waits on a futex that no thread wakes, until a timer ends the wait
 *
 * It starts by printing the holder's thread id. */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char *how;
static uint64_t hold_ns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done_cond = PTHREAD_COND_INITIALIZER;
static atomic_int has_it, waits, done, middle_tid;
static int never;
static int go[2], slow[2], slow_go[2], middle_go[2];

static struct {
	_Atomic int32_t owner;
	int32_t depth;
	char name[56];
	_Atomic uint32_t active; /* KeyDB has two halves: the current ticket, and the next one */
} fastlock __attribute__((aligned(64)));

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int is(const char *word)
{
	return strcmp(how, word) == 0;
}

static void read_one(int fd)
{
	char c;
	if (read(fd, &c, 1) != 1)
		_exit(0);
}

static void write_one(int fd)
{
	if (write(fd, "x", 1) != 1)
		_exit(1);
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	nanosleep(&t, NULL);
}

__attribute__((noinline)) static void compute(void)
{
	static volatile uint64_t sum;
	for (uint64_t until_ns = now_ns() + hold_ns; now_ns() < until_ns;)
		for (int i = 0; i < 10000; i++)
			sum += (uint64_t)i;
}

static void hold(void)
{
	struct pollfd client = {.fd = slow[0], .events = POLLIN};
	if (is("pipe") || is("poll"))
		write_one(slow_go[1]);
	if (is("poll"))
		poll(&client, 1, -1);
	if (is("pipe") || is("poll"))
		read_one(slow[0]);
	else if (!is("nobody"))
		compute();
}

static long futex(_Atomic uint32_t *word, int command, uint32_t value, uint32_t bits)
{
	return syscall(SYS_futex, word, command | FUTEX_PRIVATE_FLAG, value, NULL, word, bits);
}

static void fast_lock(uint32_t ticket)
{
	uint32_t active;
	while ((active = atomic_load(&fastlock.active)) != ticket)
		futex(&fastlock.active, FUTEX_WAIT_BITSET, active, 1u << ticket % 32);
	atomic_store(&fastlock.owner, (int32_t)gettid());
}

static void fast_unlock(uint32_t ticket)
{
	atomic_store(&fastlock.owner, -1);
	atomic_store(&fastlock.active, ticket + 1);
	futex(&fastlock.active, FUTEX_WAKE_BITSET, INT32_MAX, 1u << (ticket + 1) % 32);
}

/* The slow peer: writes to the holder when it has held the lock for long enough. */
static void *client(void *arg)
{
	for (;;) {
		read_one(slow_go[0]);
		sleep_ns(hold_ns);
		write_one(slow[1]);
	}
	return arg;
}

static void *middle(void *arg)
{
	pthread_setname_np(pthread_self(), "middle");
	atomic_store(&middle_tid, gettid());
	for (;;) {
		read_one(middle_go[0]);
		atomic_store(&waits, 1);
		pthread_mutex_lock(&lock);
		compute();
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

static void *holder(void *arg)
{
	pthread_setname_np(pthread_self(), "holder");
	printf("%d\n", gettid());
	fflush(stdout);
	for (uint32_t ticket = 0;; ticket += 2) {
		read_one(go[0]);
		if (is("fastlock"))
			fast_lock(ticket);
		else if (!is("condition"))
			pthread_mutex_lock(&lock);
		atomic_store(&has_it, 1);
		hold();
		if (is("fastlock")) {
			fast_unlock(ticket);
			continue;
		}
		if (is("condition"))
			pthread_mutex_lock(&lock);
		atomic_store(&done, 1);
		pthread_mutex_unlock(&lock);
		pthread_cond_signal(&done_cond);
	}
	return arg;
}

static void wait_for(uint32_t ticket)
{
	if (is("fastlock")) {
		fast_lock(ticket);
		fast_unlock(ticket);
		return;
	}
	if (is("nobody")) {
		struct timespec limit = {0, (long)hold_ns};
		syscall(SYS_futex, &never, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0);
		return;
	}
	pthread_mutex_lock(&lock);
	while (is("condition") && !atomic_load(&done))
		pthread_cond_wait(&done_cond, &lock);
	pthread_mutex_unlock(&lock);
}

/* "middle" has ended its other waits: once it sleeps, it waits for the lock. */
static int middle_sleeps(void)
{
	char path[64], text[128] = "";
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(&middle_tid));
	FILE *stat = fopen(path, "r");
	if (stat && !fgets(text, sizeof text, stat))
		text[0] = '\0';
	if (stat)
		fclose(stat);
	const char *state = strrchr(text, ')');
	return state && strncmp(state, ") S", 3) == 0;
}

static void serve(void)
{
	static uint32_t served;
	atomic_store(&has_it, 0);
	atomic_store(&waits, 0);
	atomic_store(&done, 0);
	write_one(go[1]);
	while (!atomic_load(&has_it))
		;
	if (is("chain")) {
		write_one(middle_go[1]);
		while (!atomic_load(&waits))
			;
		while (!middle_sleeps())
			;
	}
	uint64_t since_ns = now_ns();
	wait_for(2 * served++ + 1);
	printf("%llu\n", (unsigned long long)(now_ns() - since_ns));
	fflush(stdout);
}

static void begin(void *(*run)(void *))
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, run, NULL))
		_exit(1);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	how = argv[1];
	hold_ns = strtoull(argv[2], NULL, 10) * 1000000;
	fastlock.owner = -1;
	pthread_mutexattr_t kind;
	pthread_mutexattr_init(&kind);
	if (is("inherit"))
		pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lock, &kind);
	if (pipe(go) || pipe(slow) || pipe(slow_go) || pipe(middle_go))
		return 1;
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	begin(holder);
	begin(middle);
	begin(client);
	struct epoll_event event = {.events = EPOLLIN};
	int loop = epoll_create1(0), requests = signalfd(-1, &signals, 0);
	if (epoll_ctl(loop, EPOLL_CTL_ADD, requests, &event))
		return 1;
	for (;;) {
		struct signalfd_siginfo request;
		if (epoll_wait(loop, &event, 1, -1) == 1 &&
		    read(requests, &request, sizeof request) == sizeof request)
			serve();
	}
}

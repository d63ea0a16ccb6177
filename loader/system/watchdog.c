/* SPDX-License-Identifier: MIT */
/* See watchdog.h. */
#include "loader/system/watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <seccomp.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "loader/system/text.h"
#include "recording/recording.h"

#define LOOK_NS 500000000
#define LONG_NS 1000000000ull

static struct {
	pid_t thread; /* that is watched */
	_Atomic uint64_t round_ns, stalls;
	sem_t begun;
} watched;

/* The system call that the thread is in, or "its own code". */
static void where(char *text, size_t size)
{
	char path[64], line[128];
	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", watched.thread);
	const ssize_t n = read_text(path, line, sizeof line);
	char *end = line;
	const long number = n > 0 ? strtol(line, &end, 10) : -1;
	char *name = end != line && number >= 0
			 ? seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)number)
			 : NULL;
	if (name)
		snprintf(text, size, "%s()", name);
	else
		snprintf(text, size, "its own code");
	free(name);
}

static void *watch(void *unused)
{
	uint64_t said_ns = 0; /* the round of which it was said */
	(void)unused;
	sem_post(&watched.begun);
	for (;;) {
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		const uint64_t round_ns = watched.round_ns, now_ns = ft_now_ns();
		if (!round_ns || round_ns == said_ns || now_ns < round_ns + LONG_NS)
			continue;
		char text[80];
		where(text, sizeof text);
		said_ns = round_ns;
		watched.stalls++;
		fprintf(stderr, "forktail record: the main loop has not come back for %.1f s; it is in %s\n",
			(double)(now_ns - round_ns) * 1e-9, text);
	}
	return NULL;
}

int watchdog_start(void)
{
	pthread_t thread;
	sigset_t all, before;
	watched.thread = gettid();
	sem_init(&watched.begun, 0, 0);
	/* Signals are for the main thread, but for one that this thread's own call causes. */
	sigfillset(&all);
	sigdelset(&all, SIGSYS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int err = pthread_create(&thread, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return -err;
	pthread_detach(thread);
	/* A thread's first calls are not on the filter's list. */
	while (sem_wait(&watched.begun) && errno == EINTR)
		;
	return 0;
}

void watchdog_round(uint64_t now_ns)
{
	watched.round_ns = now_ns;
}

uint64_t watchdog_stalls(void)
{
	return watched.stalls;
}

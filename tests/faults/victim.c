/* SPDX-License-Identifier: MIT */
/* A process that uses a third of a CPU, with the name that is its first argument, as soon as it gets SIGUSR2
 * if the second is "later". With a directory and a library after that, it runs that library's code from a
 * copy in the directory, and cuts the copy off half a second later, as a careless installation does; then the
 * same with the next copy, without end. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Waits as an event loop does. */
static void pause_ms(int ms)
{
	static int loop = -1;
	struct epoll_event event;
	if (loop < 0)
		loop = epoll_create1(EPOLL_CLOEXEC);
	epoll_wait(loop, &event, 1, ms);
}

__attribute__((noinline)) static void burn(void)
{
	for (volatile long i = 0; i < 2000000; i++)
		;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void copy(const char *from, const char *to)
{
	struct stat st;
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	if (in < 0 || out < 0 || fstat(in, &st) || sendfile(out, in, NULL, (size_t)st.st_size) != st.st_size)
		abort();
	close(in);
	close(out);
}

/* Runs a copy of the library, which keeps its code: that is in its first pages. */
static void run_copy(const char *path)
{
	enum { KEPT = 12288 };
	const double begin = now();
	void *library = dlopen(path, RTLD_NOW);
	void (*work)(void) = library ? (void (*)(void))dlsym(library, "library_work") : NULL;
	if (!work)
		abort();
	for (int cut = 0; now() - begin < 1;) {
		work();
		pause_ms(3);
		if (!cut && now() - begin > 0.5)
			cut = truncate(path, KEPT) == 0;
	}
	_exit(0);
}

static char *name;

static void take_name(int signal)
{
	(void)signal;
	prctl(PR_SET_NAME, name);
}

int main(int argc, char **argv)
{
	name = argc > 1 ? argv[1] : "victim";
	signal(SIGUSR2, take_name);
	if (argc != 3)
		take_name(0);
	for (int n = 0;; n++) {
		char path[512];
		if (argc < 4) {
			burn();
			pause_ms(5);
			continue;
		}
		snprintf(path, sizeof path, "%s/copy%d.so", argv[2], n);
		copy(argv[3], path);
		const pid_t child = fork();
		if (child == 0)
			run_copy(path);
		while (waitpid(child, NULL, WNOHANG) == 0) {
			burn();
			pause_ms(5);
		}
		unlink(path);
	}
}

/* SPDX-License-Identifier: MIT */
/* Stops a thread by ptrace like a debugger. tracer TID TIMES MS stops it TIMES times for MS milliseconds
 * each, lets it run for as long in between, and then detaches. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

static void sleep_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	pid_t tid = atoi(argv[1]);
	long ms = atol(argv[3]);
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL)) {
		perror("tracer");
		return 3;
	}
	for (int i = 0; i < atoi(argv[2]); i++) {
		int status;
		sleep_ms(ms);
		if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) || waitpid(tid, &status, __WALL) != tid)
			return 1;
		sleep_ms(ms);
		if (ptrace(PTRACE_CONT, tid, NULL, NULL))
			return 1;
	}
	return 0; /* which detaches */
}

/* SPDX-License-Identifier: MIT */
/* Acts like a server that runs a script: vforker MS waits for a line, then makes a child by vfork() that ends
 * after MS milliseconds, and continues when the child has ended. Ends at the end of its input. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	struct timespec t = {0, atol(argv[1]) * 1000000};
	while (getchar() != EOF) {
		pid_t child = vfork();
		if (child < 0)
			return 1;
		if (!child) {
			nanosleep(&t, NULL);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	return 0;
}

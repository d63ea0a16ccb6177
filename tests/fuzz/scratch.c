/* SPDX-License-Identifier: MIT */
/* In /dev/shm where it exists: a fuzzer writes thousands of files per second. */
#include "scratch.h"

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64];

static int forget(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st, (void)kind, (void)where;
	return remove(path);
}

static void clean_up(void)
{
	nftw(directory, forget, 8, FTW_DEPTH | FTW_PHYS);
}

void scratch_path(char out[SCRATCH_PATH], const char *name)
{
	if (!directory[0]) {
		strcpy(directory, access("/dev/shm", W_OK) ? "/tmp/forktail-fuzz-XXXXXX"
							   : "/dev/shm/forktail-fuzz-XXXXXX");
		if (!mkdtemp(directory)) {
			perror(directory);
			exit(3);
		}
		atexit(clean_up);
	}
	snprintf(out, SCRATCH_PATH, "%s/%s", directory, name);
}

void scratch_write(const char *name, const void *bytes, size_t size)
{
	char path[SCRATCH_PATH];
	FILE *file;

	scratch_path(path, name);
	for (char *slash = strchr(path + strlen(directory) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "wb");
	if (!file || (size && fwrite(bytes, 1, size, file) != size) || fclose(file)) {
		perror(path);
		exit(3);
	}
}

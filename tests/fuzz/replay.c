/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target over every file of a directory, without libFuzzer, so that every compiler and every test
 * run checks earlier findings. The target aborts on a failure.
 *
 *   test_fuzz_resp build/tests/fuzz/corpus/resp
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/check.h"

/* Reads the whole file into memory of its size. False, after a message: it could not be read. */
static bool replay(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t size = 0, got;
	bool ok;

	if (!file) {
		fprintf(stderr, "cannot open %s: %s\n", path, strerror(errno));
		return false;
	}
	do {
		uint8_t *more = realloc(data, size + 4096);

		if (!more) {
			fprintf(stderr, "out of memory for %s\n", path);
			exit(3);
		}
		data = more;
		got = fread(data + size, 1, 4096, file);
		size += got;
	} while (got > 0);
	ok = !ferror(file);
	fclose(file);
	if (ok)
		LLVMFuzzerTestOneInput(data, size);
	else
		fprintf(stderr, "cannot read %s\n", path);
	free(data);
	return ok;
}

int main(int argc, char **argv)
{
	struct dirent *entry;
	size_t files = 0;
	DIR *dir;

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	dir = opendir(argv[1]);
	if (!dir) {
		fprintf(stderr, "cannot open the corpus %s: %s\n", argv[1], strerror(errno));
		return 3;
	}
	while ((entry = readdir(dir))) {
		char path[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		/* The last file printed is the one that aborted. */
		printf("%s\n", path);
		fflush(stdout);
		if (!replay(path))
			return 3;
		files++;
	}
	closedir(dir);
	if (files == 0) {
		fprintf(stderr, "the corpus %s has no files\n", argv[1]);
		return 3;
	}
	printf("%zu inputs\n", files);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* A directory of the fuzzing process, for parsers that read files: in memory, removed at its end. */
#ifndef FORKTAIL_FUZZ_SCRATCH_H
#define FORKTAIL_FUZZ_SCRATCH_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SCRATCH_PATH = 128 };

/* `name` in the directory, which is created by the first call. */
void scratch_path(char out[SCRATCH_PATH], const char *name);
/* Creates or replaces a file, and creates its folders. */
void scratch_write(const char *name, const void *bytes, size_t size);

#ifdef __cplusplus
}
#endif
#endif

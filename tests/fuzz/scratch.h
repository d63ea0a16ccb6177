/* SPDX-License-Identifier: MIT */
/* A directory of the fuzzing process' own, for what is read from files: in memory, gone when it ends. */
#ifndef FORKTAIL_FUZZ_SCRATCH_H
#define FORKTAIL_FUZZ_SCRATCH_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SCRATCH_PATH = 128 };

/* `name` in the directory, which is made at the first call. */
void scratch_path(char out[SCRATCH_PATH], const char *name);
/* Makes or replaces a file; folders on the way are made. */
void scratch_write(const char *name, const void *bytes, size_t size);

#ifdef __cplusplus
}
#endif
#endif

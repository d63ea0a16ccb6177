/* SPDX-License-Identifier: MIT */
/* Opens files that a user named for output. The programs often run as root, and the name may be in a
 * directory of another user, who could have put a link there: to a file that only root may write. So a link
 * is followed only if it and its directory belong to the caller or to root, and a file that has other names
 * (hard links) is written only in such a directory. /dev/stdout, /dev/stderr, /dev/fd and /proc/self/fd lead
 * to the caller's open files. */
#ifndef FORKTAIL_COMMON_FILES_OUTPUT_H
#define FORKTAIL_COMMON_FILES_OUTPUT_H

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a file for writing, made if it is not there (0666 as far as the umask allows) and emptied. Returns a
 * descriptor or a negative errno: -ELOOP and -EMLINK are explained by output_why(). */
int output_open(const char *path);
/* The same as a stream. NULL: errno is set. */
FILE *output_fopen(const char *path);
/* Whether an existing name may be written to: 0 or a negative errno, as above. */
int output_check(const char *path);
/* Why output_open() or output_check() refused; `error` is a positive errno. */
const char *output_why(int error);

#ifdef __cplusplus
}
#endif

#endif

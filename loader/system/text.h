/* SPDX-License-Identifier: MIT */
/* Reads files of /proc and similar file systems as text: they have no size until they are read. */
#ifndef FORKTAIL_LOADER_TEXT_H
#define FORKTAIL_LOADER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a file that fits in one read(), up to the given size. Returns its length or a negative errno. `text`
 * is always terminated. */
ssize_t read_text(const char *path, char *text, size_t size);

/* The same for /proc/PID/FILE, with NUL bytes replaced by spaces and trailing blanks removed. */
int read_proc(pid_t pid, const char *file, char *text, size_t size);

/* Text of a file of any length. Its memory is reused for the next file; the owner frees it. */
struct text {
	char *bytes;   /* terminated */
	size_t length; /* 0: `bytes` may be NULL */
	size_t room;
};

/* Reads all of an open file from its beginning. False if it was not read completely: an error, no memory, or
 * more than `most` bytes. */
bool text_read(struct text *t, int fd, size_t most);
/* The same for a file given by path, relative to `directory` (AT_FDCWD: the current directory). */
bool text_read_at(struct text *t, int directory, const char *path, size_t most);

#ifdef __cplusplus
}
#endif

#endif

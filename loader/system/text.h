/* SPDX-License-Identifier: MIT */
/* Files of /proc and the like as text: they have no size until they are read. */
#ifndef FORKTAIL_LOADER_TEXT_H
#define FORKTAIL_LOADER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a file that is short enough for one read(), as much of it as there is room for. Returns its length or
 * a negative errno; `text` is always terminated. */
ssize_t read_text(const char *path, char *text, size_t size);

/* The same of /proc/PID/FILE, NUL bytes turned into spaces, trailing blanks cut. */
int read_proc(pid_t pid, const char *file, char *text, size_t size);

/* Text of a file however long it is; its memory is kept for the next one, and freed by whoever has it. */
struct text {
	char *bytes;   /* terminated */
	size_t length; /* 0: `bytes` may be NULL */
	size_t room;
};

/* Reads all of an open file from its beginning. False when not all of it was read: an error, no memory, more
 * than `most` bytes. */
bool text_read(struct text *t, int fd, size_t most);
/* The same of a file by its path, from `directory` (AT_FDCWD: from here). */
bool text_read_at(struct text *t, int directory, const char *path, size_t most);

#ifdef __cplusplus
}
#endif

#endif

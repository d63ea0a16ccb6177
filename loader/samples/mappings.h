/* SPDX-License-Identifier: MIT */
/* Which files a process runs code of, and where in its memory they lie: /proc/PID/maps taken apart. */
#ifndef FORKTAIL_LOADER_MAPPINGS_H
#define FORKTAIL_LOADER_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MAPPED_FILES = 1024, MAPPED_PATH = 4096 };

/* A file that is mapped, in part executable. */
struct mapped_file {
	uint64_t start, end;	       /* of all that is mapped of it in a row */
	uint64_t code_start, code_end; /* of the first executable mapping of it */
	uint64_t inode;		       /* 0: the kernel's own page of code, "[vdso]" */
	uint32_t device[2];	       /* major and minor */
	char path[MAPPED_PATH];	       /* as the process sees it; with " (deleted)" when it has gone */
};

/* Calls `found` for every file that the text, of the form of /proc/PID/maps, has code of; in the order of
 * their addresses, MAPPED_FILES at most. Anything else than mappings in it is skipped. */
typedef void (*mapping_handler)(void *context, const struct mapped_file *file);
void mappings_each(const char *text, mapping_handler found, void *context);

/* Reads a process' maps into memory to be freed; NULL when they can't be read or are larger than 16 MB. */
char *mappings_read(pid_t pid);

/* The last component of a path, without " (deleted)", cut to `size`. */
void mappings_base_name(const char *path, char *name, size_t size);

#ifdef __cplusplus
}
#endif

#endif

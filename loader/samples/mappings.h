/* SPDX-License-Identifier: MIT */
/* Which files a process executes code from, and their addresses: parses /proc/PID/maps. */
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

/* A mapped file with an executable part. */
struct mapped_file {
	uint64_t start, end;	       /* of all consecutive mappings of the file */
	uint64_t code_start, code_end; /* of its first executable mapping */
	uint64_t inode;		       /* 0: the kernel's code page, "[vdso]" */
	uint32_t device[2];	       /* major and minor */
	char path[MAPPED_PATH];	       /* as the process sees it; with " (deleted)" if it was deleted */
};

/* Calls `found` for every file with code in the text, which has the form of /proc/PID/maps, in order of
 * addresses, at most MAPPED_FILES. Lines that are not mappings are skipped. */
typedef void (*mapping_handler)(void *context, const struct mapped_file *file);
void mappings_each(const char *text, mapping_handler found, void *context);

/* Reads a process' maps into memory that the caller frees. NULL if they cannot be read or are larger than 16
 * MB. */
char *mappings_read(pid_t pid);

/* The last component of a path, without " (deleted)", truncated to `size`. */
void mappings_base_name(const char *path, char *name, size_t size);

#ifdef __cplusplus
}
#endif

#endif

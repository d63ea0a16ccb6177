/* SPDX-License-Identifier: MIT */
/* The helper process that touches what targets chose: their mapped files, their memory maps, their command
 * lines. Each of these calls may block for good: a file system of a process that does not answer, a memory
 * map that is locked. So the recorder makes none of them; this process is abandoned and replaced if it is
 * hung (target_files.h). It passes the files to the unwinding helper, never to the recorder. */
#ifndef FORKTAIL_LOADER_FILES_HELPER_H
#define FORKTAIL_LOADER_FILES_HELPER_H

#include <limits.h>
#include <stdint.h>

#include "loader/samples/mappings.h"
#include "loader/system/helper_process.h"

#ifdef __cplusplus
extern "C" {
#endif

enum files_request_kind {
	FILES_MAPS = 1, /* answered with the process' program and its mapped files */
	FILES_SEND = 2, /* sends the files to the unwinding helper as the space `space`; answered when done */
	FILES_TITLE = 3,   /* answered with the process' command line */
	FILES_REFUSE = 4,  /* `key` is a file that is not to be sent; no answer */
	FILES_CONNECT = 5, /* with two descriptors, the other ends of UNWIND_SOURCE's; no answer */
};

struct files_request {
	uint32_t kind;
	int32_t pid;
	uint32_t space;
	uint32_t preload;
	uint64_t key[4];
};

/* A file's mapping. These fields distinguish address spaces. */
struct mapped_place {
	uint64_t start, end, inode;
	uint32_t device[2];
};

enum {
	FILES_TITLE_BYTES = 1024,
	FILES_REFUSED_MAX = 64, /* files that are not sent; further ones are */
};

struct files_answer {
	uint32_t kind;
	int32_t pid;
	int32_t error; /* negative errno */
	uint32_t count;
	char program[NAME_MAX + 1];
	union {
		struct mapped_place places[MAPPED_FILES]; /* only `count` are sent */
		char title[FILES_TITLE_BYTES];		  /* only `count` bytes are sent */
	};
};

extern const struct helper_setup files_helper;

#ifdef __cplusplus
}
#endif

#endif

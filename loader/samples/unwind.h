/* SPDX-License-Identifier: MIT */
/* Resolves the registers and stack of a sampled thread to functions by name, with libdw. It knows address
 * spaces and their opened files, and asks the host for nothing else, so it can run in a sandbox
 * (unwind_helper.h). */
#ifndef FORKTAIL_LOADER_UNWIND_H
#define FORKTAIL_LOADER_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"

enum {
	UNWIND_FRAMES = 64, /* the innermost frames; the rest is cut off */
	UNWIND_NAME = 64,   /* of a file's name */
};

/* A file that is mapped into an address space. */
struct unwind_file {
	uint64_t start, end;
	uint64_t key[4]; /* identifies a file: of two files with the same key, the first is used for both */
	char name[UNWIND_NAME];
};

/* Names are valid until the next call. */
struct unwind_frame {
	const char *function; /* "" if the file has no name for the address */
	const char *module;   /* file name of the program or library; "" without one */
};

struct unwind_stack {
	size_t count;
	struct unwind_frame frames[UNWIND_FRAMES]; /* innermost first */
	bool cut;				   /* there are more callers than could be found */
};

struct unwinder;

/* Opens the debug file of a program by its build id, for reading. Negative: not found. */
typedef int (*debug_file_finder)(void *context, const uint8_t *build_id, size_t bytes);

/* Called before a file is read: its key, and its name. Either the file's reading ends, or this process does.
 */
typedef void (*file_reporter)(const uint64_t key[4], const char *name);

/* `report` may be NULL. */
struct unwinder *unwinder_open(debug_file_finder find_debug_file, void *context, file_reporter report);
void unwinder_close(struct unwinder *u);

/* An address space, identified by a number that the caller chooses: creates an empty one (replacing one with
 * the same number), */
void unwinder_begin_space(struct unwinder *u, uint32_t id);
/* adds its files, and takes ownership of their descriptors (-1: the kernel's code page), */
void unwinder_add_file(struct unwinder *u, uint32_t id, const struct unwind_file *file, int fd);
/* and makes it ready for use. `preload`: read symbols and unwind tables now. */
void unwinder_end_space(struct unwinder *u, uint32_t id, bool preload);
void unwinder_forget_space(struct unwinder *u, uint32_t id);
/* After a crash in a function of this space: it is not used any more, and its memory is left as it is. */
void unwinder_abandon_space(struct unwinder *u, uint32_t id);

/* Resolves the function at the sample's address and, with `callers`, all callers in the copied stack. */
void unwinder_unwind(struct unwinder *u, uint32_t id, const struct ft_event_sample_stack *e, bool callers,
		     struct unwind_stack *out);

#endif

/* SPDX-License-Identifier: MIT */
/* From a sampled thread's registers and stack to its functions by name, with libdw.
 *
 * It knows address spaces, and in each of them files that were opened for it, and asks the host for nothing
 * else: so it runs where there is no host to ask (unwind_helper.h). */
#ifndef FORKTAIL_LOADER_UNWIND_H
#define FORKTAIL_LOADER_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"

enum {
	UNWIND_FRAMES = 64, /* the innermost; the rest is cut off */
	UNWIND_NAME = 64,   /* of a file's name */
};

/* A file that is mapped into an address space. */
struct unwind_file {
	uint64_t start, end;
	uint64_t key[4]; /* what tells files apart: of two with the same the first is used for both */
	char name[UNWIND_NAME];
};

/* Names are valid until the next call. */
struct unwind_frame {
	const char *function; /* "" if the file has no name for the address */
	const char *module;   /* file name of the program or library; "" if it is in none */
};

struct unwind_stack {
	size_t count;
	struct unwind_frame frames[UNWIND_FRAMES]; /* innermost first */
	bool cut;				   /* there are more callers than could be found */
};

struct unwinder;

/* Opens the debug file of a program by its build id, for reading; negative: there is none. */
typedef int (*debug_file_finder)(void *context, const uint8_t *build_id, size_t bytes);

struct unwinder *unwinder_open(debug_file_finder find_debug_file, void *context);
void unwinder_close(struct unwinder *u);

/* An address space by a number of the caller's: made empty (in place of one that has the number), */
void unwinder_begin_space(struct unwinder *u, uint32_t id);
/* given its files, of which it takes the descriptors (-1: the kernel's own page of code), */
void unwinder_add_file(struct unwinder *u, uint32_t id, const struct unwind_file *file, int fd);
/* and ready for use; `ahead`: symbols and unwind tables are read now. */
void unwinder_end_space(struct unwinder *u, uint32_t id, bool ahead);
void unwinder_forget_space(struct unwinder *u, uint32_t id);

/* The function at the sample's address, and, with `callers`, all callers that the copied stack has. */
void unwinder_unwind(struct unwinder *u, uint32_t id, const struct ft_event_sample_stack *e, bool callers,
		     struct unwind_stack *out);

#endif

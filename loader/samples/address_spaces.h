/* SPDX-License-Identifier: MIT */
/* Which files are in the memory of a process, as the unwinding helper knows it: a number for each address
 * space. A forked child shares its parent's, so nothing is sent again for it. */
#ifndef FORKTAIL_LOADER_ADDRESS_SPACES_H
#define FORKTAIL_LOADER_ADDRESS_SPACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/samples/target_files.h"

struct address_spaces;

enum {
	SPACE_NONE = 0,
	SPACE_PENDING = UINT32_MAX, /* it is being looked up */
};

struct address_spaces_handler {
	/* Lookups have ended: address_spaces_find() may know more. */
	void (*resolved)(void *context);
	/* No process has this space any more. */
	void (*forget)(void *context, uint32_t space);
	void *context;
};

/* NULL: no memory. Answers of `files` are to be passed on by the three functions at the end. */
struct address_spaces *address_spaces_open(struct target_files *files,
					   const struct address_spaces_handler *handler);
void address_spaces_close(struct address_spaces *s);
/* The helper that knew the address spaces has exited: the next helper gets them again. */
void address_spaces_forget_all(struct address_spaces *s);

/* Returns the address space of a process, or of its parent if the process has exited. If `address` is not 0
 * and in none of its files, the mappings are read again: the process loaded a library or called exec.
 * *program is the file name of the process' program, valid until the next call. `preload`: read its files
 * now. */
uint32_t address_spaces_find(struct address_spaces *s, pid_t pid, pid_t parent, uint64_t address,
			     bool preload, const char **program);
/* The same, but looks nothing up. */
uint32_t address_spaces_known(struct address_spaces *s, pid_t pid, pid_t parent, uint64_t address,
			      const char **program);
/* The process has ended. */
void address_spaces_forget(struct address_spaces *s, pid_t pid);

void address_spaces_maps(struct address_spaces *s, pid_t pid, const struct mapped_place *places, size_t count,
			 const char *program);
void address_spaces_no_maps(struct address_spaces *s, pid_t pid);
void address_spaces_sent(struct address_spaces *s, uint32_t space, int error);

#endif

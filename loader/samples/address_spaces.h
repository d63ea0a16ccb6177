/* SPDX-License-Identifier: MIT */
/* Describes processes to the unwinding helper: a number for each address space and the files in it. A forked
 * child shares its parent's address space, so nothing is sent again for it. */
#ifndef FORKTAIL_LOADER_ADDRESS_SPACES_H
#define FORKTAIL_LOADER_ADDRESS_SPACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/samples/unwind_messages.h"

struct address_spaces;

/* Sends a request, with a descriptor whose ownership it takes (or -1). */
typedef void (*request_sender)(void *context, const struct unwind_request *request, size_t bytes, int fd);

struct address_spaces *address_spaces_open(request_sender send, void *context);
void address_spaces_close(struct address_spaces *s);
/* The helper that knew the address spaces has exited: the next helper gets them again. */
void address_spaces_forget_all(struct address_spaces *s);

/* Returns the address space of a process, or of its parent if the process has exited. If `address` is not 0
 * and in none of its files, the mappings are read again: the process loaded a library or called exec. 0:
 * none. *program is the file name of the process' program, valid until the next call. `ahead`: read its files
 * now. */
uint32_t address_spaces_find(struct address_spaces *s, pid_t pid, pid_t parent, uint64_t address, bool ahead,
			     const char **program);
void address_spaces_forget(struct address_spaces *s, pid_t pid);

#endif

/* SPDX-License-Identifier: MIT */
/* Processes as the unwinding helper is told of them: a number for each address space, and the files in it. A
 * child that was forked has its parent's, so nothing is told again. */
#ifndef FORKTAIL_LOADER_ADDRESS_SPACES_H
#define FORKTAIL_LOADER_ADDRESS_SPACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/samples/unwind_messages.h"

struct address_spaces;

/* Sends a request on, with a descriptor that it takes (or -1). */
typedef void (*request_sender)(void *context, const struct unwind_request *request, size_t bytes, int fd);

struct address_spaces *address_spaces_open(request_sender send, void *context);
void address_spaces_close(struct address_spaces *s);
/* The helper that knew them has gone: the next one is told again. */
void address_spaces_forget_all(struct address_spaces *s);

/* The address space of a process, or of its parent where it has ended, looked at again if `address` (unless
 * 0) is in none of its files: it has loaded a library, or is another program since exec. 0: there is none.
 * *program is its program's file name, valid until the next call. `ahead`: its files are to be read now. */
uint32_t address_spaces_find(struct address_spaces *s, pid_t pid, pid_t parent, uint64_t address, bool ahead,
			     const char **program);
void address_spaces_forget(struct address_spaces *s, pid_t pid);

#endif

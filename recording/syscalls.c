/* SPDX-License-Identifier: MIT */
/* The table that cmake/syscall_names.cmake generates from <asm/unistd.h>, and its lookup. */
#include "syscalls.h"

#include <asm/unistd.h>
#include <stddef.h>

static const char *const names[] = {
#include "syscall_names.inc"
};

int ft_syscall_limit(void)
{
	return (int)(sizeof names / sizeof *names);
}

const char *ft_syscall_name(int number)
{
	return number >= 0 && number < ft_syscall_limit() ? names[number] : NULL;
}

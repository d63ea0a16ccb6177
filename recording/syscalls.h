/* SPDX-License-Identifier: MIT */
/* Names of x86-64's system calls. Spans have numbers, and those mean something else on another machine: a
 * recorder writes the names that its numbers have into its manifest, and who reads a recording that has none
 * (they all come from x86-64) finds them here. */
#ifndef FORKTAIL_SYSCALLS_H
#define FORKTAIL_SYSCALLS_H

#ifdef __cplusplus
extern "C" {
#endif

/* "read" for 0. NULL for a number that had no name when this was built; from ft_syscall_limit() on, none
 * has. */
const char *ft_syscall_name(int number);
int ft_syscall_limit(void);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
/* Names of this machine's system calls. Spans contain numbers, which differ on other machines, so a recorder
 * writes the names for its numbers to its manifest, and readers take them from there. */
#ifndef FORKTAIL_SYSCALLS_H
#define FORKTAIL_SYSCALLS_H

#ifdef __cplusplus
extern "C" {
#endif

/* "read" for 0. NULL for a number without a name at build time; from ft_syscall_limit() on, none has a
 * name. */
const char *ft_syscall_name(int number);
int ft_syscall_limit(void);

#ifdef __cplusplus
}
#endif

#endif

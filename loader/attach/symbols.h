/* SPDX-License-Identifier: MIT */
/* Names of kernel addresses, from /proc/kallsyms. */
#ifndef FORKTAIL_LOADER_SYMBOLS_H
#define FORKTAIL_LOADER_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the table: some 10 ms of CPU and 10 MB. To be done before recording, or it would be the recorder
 * itself that holds the CPU when the first stack comes. Returns the number of symbols, 0 when the kernel
 * hides their addresses. Reads only once. */
size_t symbols_load(void);

/* Writes "name+0x1f" for a kernel address, or "?" where the kernel shows no name: the address itself is not
 * for a recording, which may go to others, because it tells where in memory this kernel lies. */
void symbol_name(uint64_t address, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
/* Names of kernel addresses, from /proc/kallsyms. */
#ifndef FORKTAIL_LOADER_SYMBOLS_H
#define FORKTAIL_LOADER_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the table, which takes about 10 ms of CPU and 10 MB. Call it before recording; otherwise the recorder
 * would hold the CPU when the first stack arrives. Returns the number of symbols, 0 if the kernel hides their
 * addresses. Reads the table only once. */
size_t symbols_load(void);

/* Writes "name+0x1f" for a kernel address, or "?" if the kernel reveals no name. The address itself is not
 * written to recordings, which may be passed on, because it reveals where this kernel is in memory. */
void symbol_name(uint64_t address, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif

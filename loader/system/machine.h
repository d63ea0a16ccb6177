/* SPDX-License-Identifier: MIT */
/* What the recorder knows of the machine that it is built for. Each machine has a file machine_NAME.c, of
 * which the build takes one (cmake/machine.cmake), and a header for the kernel programs
 * (bpf/machine/machine.h). */
#ifndef FORKTAIL_LOADER_MACHINE_H
#define FORKTAIL_LOADER_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An interrupt's tracepoint that only this machine has, and what a recording lacks without it. */
struct machine_interrupt {
	const char *tracepoint, *without;
};

struct machine {
	const char *name;	  /* as in `uname -m` */
	const char *call_prefix;  /* of the kernel functions of system calls */
	const char *cpu_line;	  /* of /proc/cpuinfo: names the processor */
	uint16_t elf;		  /* EM_... of its programs */
	uint64_t address_bits;	  /* of an address in user space; the others may contain its signature */
	int stack_register;	  /* as DWARF numbers them */
	int instruction_register; /* negative: DWARF does not number it */
	int saved_registers[FT_SAVED_REGISTERS]; /* in the order of a sample's */
	const struct machine_interrupt *interrupts;
	size_t interrupt_count;
};

extern const struct machine machine;

/* Sets the result of the system call that a signal handler for SIGSYS interrupted. */
void machine_set_result(void *ucontext, long result);

#ifdef __cplusplus
}
#endif

#endif
